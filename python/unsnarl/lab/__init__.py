"""The laboratory: experiments on threads, processes and start-up that anyone can repeat.

``experiment`` says what an experiment is, ``experiments`` holds one file for each,
``programs`` the programs that are measured. ``running`` carries the runs out, ``results``
keeps what came out as data, sums it up and shows it.

Invariants: whatever is measured is a process of its own, which imports nothing of
this package; a run never compares; a peer that is not there is named with the
reason. Statistics are those of ``unsnarl.statistics``,
for the benchmarks in the repository as well: docs/design/lab.md.
"""
