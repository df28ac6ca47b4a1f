"""Green threads: the set-up of ``unsnarl run --green``, before the program's first line.

gevent makes every thread of the program a greenlet of one native thread, so that a lock, a queue or an event changes
hands without a system call. This package adds what a program expects that was not written for greenlets:

- ``signals``: exceptions of signal handlers are raised in the main thread;
- ``signal_waits``: a wait for a signal stops no other thread;
- ``fork``: a forked child has none of its parent's other threads;
- ``children``: ``os.wait`` finds forked children;
- ``shell``: ``os.system`` blocks only its caller;
- ``late``: a module is patched only when the program imports it;
- ``refusals``, ``notices``, ``missing``: messages about libraries that cannot run this way, libraries that wait in C,
  and names that gevent removes.

Invariant: neither this package nor gevent is imported unless green threads were requested. Why gevent, and what was
left out: docs/design/green.md.
"""

REQUIREMENT = "gevent>=25"
"""The distribution to install for green threads."""


def is_available() -> bool:
    """Return whether gevent can be imported here, without importing it."""
    from importlib.util import find_spec

    return find_spec("gevent") is not None


def enter() -> None:
    """Turn the threads of this process, which has one so far, into greenlets.

    Raises:
        ImportError: gevent is not installed, or does not load in this interpreter.
    """
    from unsnarl.green import children, fork, late, missing, notices, refusals, shell, signal_waits, signals

    patch_all = __import__("gevent.monkey", fromlist=["patch_all"]).patch_all
    # ssl is patched when the program imports it: loading OpenSSL is slow, and makes futex calls.
    patch_all(ssl=False)
    late.install()
    signals.install()
    signal_waits.install()
    fork.install()
    children.install()
    shell.install()
    missing.install()
    notices.install()
    refusals.install()
