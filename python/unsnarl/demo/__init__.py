"""The demonstration: a threaded web server next to CPU-bound threads, without and with unsnarl.

``server`` and ``gthread`` are the measured processes, ``load`` is the process that sends requests,
``measurement`` alternates the variants, ``comparison`` pairs them, ``table`` and ``picture`` show the
figures. Invariant: the measuring process itself never installs the scheduler.
"""
