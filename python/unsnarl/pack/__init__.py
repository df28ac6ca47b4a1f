"""Packs: the code of all modules a command loads, in one mapped file.

``container`` is the file format, ``finder`` the import hook (it runs inside the
command's interpreter and imports almost nothing), ``recorder`` makes a pack.
"""
