"""The laboratory: repeatable experiments on threads, processes and start-up.

``experiment`` defines an experiment as data, ``experiments`` has one file for each, ``programs``
the measured programs. ``running`` carries the runs out; ``results`` stores their figures,
summarises them and renders the report.

Invariants: every measurement runs in a separate process that imports nothing of this package; a run
never compares variants; a missing peer is reported with the reason. The statistics are those of
``unsnarl.statistics``, as for the benchmarks in the repository: docs/design/lab.md.
"""
