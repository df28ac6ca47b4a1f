"""The demonstration: a threaded web server beside CPU-bound threads, without and with unsnarl.

``server`` and ``gthread`` are the measured processes, ``load`` the process that
asks them, ``measurement`` alternates the variants, ``table`` and ``picture``
show what came out. The measuring process itself never installs the scheduler.
"""
