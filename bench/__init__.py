"""Measurements of unsnarl, from outside: through its public API, in processes of their own.

- ``gil``: the measuring programs of the scheduler; ``python -m bench`` runs the cases of ``plan`` in alternation and
  keeps the results as data; ``results`` reads them, ``goals`` judges them, ``render`` makes a page of them.
- ``primitives``, ``ipc``, ``warm``, ``trace_overhead``: the other parts of unsnarl, each with its own page.
- ``builds``: two builds of unsnarl against each other.

Invariant: a measured program never compares, and no figure of a page is typed by hand.
"""
