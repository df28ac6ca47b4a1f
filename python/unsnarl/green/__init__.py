"""Green threads: what ``unsnarl run --green`` sets up before the program's first line.

gevent makes every thread of the program a greenlet of one native thread, so that
a lock, a queue or an event changes hands without a system call. This package adds
what a program that knows nothing of greenlets takes for granted: handlers of
signals that raise in the main thread, waits for signals that stop no other thread (``signal_waits``),
a forked child without its parent's threads, a wait for children that finds them (``children``),
``os.system`` that blocks its caller alone (``shell``), no library that gevent needs for one module
only (``late``), and a clear word about programs that cannot run this way (``refusals``), libraries that
wait in C (``notices``) and names that gevent takes away (``missing``).

Invariant: nothing here is imported, and gevent is not, unless green threads were
asked for. Why gevent, and what was left out: docs/design/green.md.
"""

EXTRA = "unsnarl[green]"
"""What to install for it."""


def is_available() -> bool:
    """Tell whether gevent can be imported here; it is not imported for that."""
    from importlib.util import find_spec

    return find_spec("gevent") is not None


def enter() -> None:
    """Turn the threads of this process, which has one so far, into greenlets.

    Raises:
        ImportError: gevent is not there, or does not load in this interpreter.
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
