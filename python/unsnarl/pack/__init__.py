"""Packs: the code of all modules a command loads, in one mapped file.

- ``recorder``, ``learner``, ``quiet`` and ``freshness`` make a pack; ``launcher`` writes the program that uses it.
- ``start``, ``finder``, ``late`` and ``container`` run inside the command's interpreter and import almost nothing.

Invariant: a program runs without its pack whenever the pack cannot be used.
"""
