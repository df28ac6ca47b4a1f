"""The programs that are measured: run by path, in a process and an interpreter of their own.

None imports anything of unsnarl, unless it is told to by ``--library``. Each prints
its figures as one line of JSON at its end. ``import_loop.py`` and ``queue_pair.py``
also run under Python 2.7; ``measured.py`` is what the others share.
"""
