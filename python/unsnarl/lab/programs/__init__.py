"""The measured programs: run by path, each in a separate process and possibly another interpreter.

No program imports unsnarl, except by ``--library``. Each prints its figures as one line of JSON at its
end. ``import_loop.py`` and ``queue_pair.py`` also run under Python 2.7; ``measured.py`` holds what the
others share.
"""
