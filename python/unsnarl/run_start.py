"""What the settings of ``unsnarl run`` and ``unsnarl trace`` request of a process: installs it, or says why not.

``_unsnarl_boot`` calls ``start`` before the program's first line, or, where the settings request nothing but the
scheduler, before the program's first thread. ``start`` installs the scheduler, or prints one line with the reason why
it could not. It raises nothing, since the program must run unchanged either way.

Invariant: without unsnarl's own modules (and, under ``--patch`` and ``--green``, the
modules that these patch, which have to be loaded), ``sys.modules`` is the same before and after
a start without errors. A program may have its own ``signal.py`` or ``queue.py``, and must find
it as it would without unsnarl.
"""

import os
import sys

from unsnarl import run_settings
from unsnarl.run_settings import RunSettings

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable


def start(text: str) -> None:
    """Do what the settings of this text request, if they are for this interpreter."""
    try:
        settings = run_settings.decode(text)
    except ValueError as error:
        _say(f"the environment variable {run_settings.VARIABLE} is ignored: {error}")
        return
    if not settings.is_for_this_interpreter():
        return
    if settings.main_pid == 0:  # the launcher could not know this process id
        settings.main_pid = os.getpid()
        os.environ[run_settings.VARIABLE] = settings.encode()
    if not settings.children:
        _keep_from_children()
        if not settings.is_main():
            return
    _enter(settings)


def _keep_from_children() -> None:
    """Remove the settings; in an environment that is enabled, leave the variable empty, which switches that off."""
    from unsnarl import enabled

    if enabled.is_here():
        os.environ[run_settings.VARIABLE] = ""
    else:
        del os.environ[run_settings.VARIABLE]


def _enter(settings: RunSettings) -> None:
    """Install, and register the functions for forks and for the end."""
    if settings.pack:
        _open_pack(settings)
    if settings.green:
        _enter_green(settings)
        return
    if settings.patch and not _is_subinterpreter():
        _patch(settings)
    is_installed = settings.scheduler and _install(settings)
    if settings.trace is not None:
        _record(settings)
    _publish(settings)
    if not is_installed:
        return
    if not settings.children:
        _leave_in_forked_children()
    if settings.stats != "no":
        import atexit

        # Now, and not at the end, where an import may find a file of the program.
        from unsnarl import _native, gil_counts
        from unsnarl.report import gil_stats

        atexit.register(_print_stats, settings, lambda: gil_stats.text(gil_counts.named(_native.stats())))


def _enter_green(settings: RunSettings) -> None:
    """Run the program's threads in user space, where no scheduler is needed; if that fails, print so once."""
    if _is_subinterpreter():
        return
    try:
        from unsnarl import green

        green.enter()
    except KeyboardInterrupt:
        _die_of_interrupt()
    except Exception as error:
        if settings.is_main():
            _say(f"the program runs with the interpreter's own threads, not with green ones: {error}")
    if settings.patch:
        _patch(settings)


def install_late(text: str) -> None:
    """Install the scheduler in the midst of the program: a Ctrl-C meanwhile is the program's."""
    _install_or_say(run_settings.decode(text))


def _install(settings: RunSettings) -> bool:
    """Install the scheduler before the program's first line; return whether it is installed."""
    try:
        return _install_or_say(settings)
    except KeyboardInterrupt:
        _die_of_interrupt()
        raise


def _install_or_say(settings: RunSettings) -> bool:
    """Install the scheduler; if that fails, print so in the main process and return False."""
    try:
        from unsnarl import gil

        gil.install(slice_ms=settings.slice_ms, batch_share=settings.batch_share, kernel_hints=settings.kernel_hints)
    except Exception as error:
        # The program must run after any failure here.
        if settings.is_main() and not _is_subinterpreter():
            _say(f"the program runs without the GIL scheduler: {error}")
        return False
    return True


def _open_pack(settings: RunSettings) -> None:
    """Import from the pack; if that fails, import as usual, and print so once."""
    try:
        from unsnarl.pack import start

        start.install(settings.pack, warns=settings.is_main())
    except KeyboardInterrupt:
        _die_of_interrupt()
    except Exception as error:
        if settings.is_main():
            _say(f"the program runs without its pack: {error}")


def _patch(settings: RunSettings) -> None:
    """Make the standard library's primitives native; if that fails, print so once."""
    try:
        from unsnarl.patching import patch

        patch()
    except KeyboardInterrupt:
        _die_of_interrupt()
    except Exception as error:
        if settings.is_main():
            _say(f"the program runs with the standard library's primitives: {error}")


def _record(settings: RunSettings) -> None:
    """Start to record; if that fails, print so in the main process."""
    try:
        from unsnarl.trace.traced import recording

        recording.start(settings)
    except KeyboardInterrupt:
        _die_of_interrupt()
    except Exception as error:
        if settings.is_main() and not _is_subinterpreter():
            _say(f"the program runs without being traced: {error}")


def _publish(settings: RunSettings) -> None:
    """Answer with this process's figures, if requested; if that fails, print so in the main process."""
    if not settings.metrics or _is_subinterpreter():
        return
    try:
        from unsnarl.metrics import workers

        host, _, port = settings.metrics.rpartition(":")
        workers.start(settings.main_pid, host.strip("[]"), int(port))
    except KeyboardInterrupt:
        _die_of_interrupt()
    except Exception as error:
        if settings.is_main():
            _say(f"the program runs without an endpoint for its figures at {settings.metrics}: {error}")


def _leave_in_forked_children() -> None:
    """Uninstall the scheduler in forked children, which never pass through ``start``."""
    from unsnarl import gil

    os.register_at_fork(after_in_child=gil.uninstall)


def _print_stats(settings: RunSettings, text: "Callable[[], str]") -> None:
    """Print this process's statistics on stderr; a closed stderr is no error, nor is Ctrl-C. Imports nothing new.

    Writes past Python's buffers: the interpreter would try to write the rest of a buffer again,
    and change the exit status.
    """
    if not settings.prints_stats_here() or sys.__stderr__ is None:
        return
    try:
        stderr = sys.__stderr__.fileno()
        rest = _uninterrupted(text).encode()
        while rest:
            rest = rest[os.write(stderr, rest) :]
    except (OSError, ValueError, KeyboardInterrupt):
        return
    except Exception as error:
        # The program may have modules with the names of those that the report reads.
        _say(f"the statistics cannot be shown: {error}")


def _uninterrupted(text: "Callable[[], str]") -> str:
    """Return the text whatever keys are pressed meanwhile: the program has ended already."""
    while True:
        try:
            return text()
        except KeyboardInterrupt:
            continue


def _is_subinterpreter() -> bool:
    """Check by a module that is worth loading only on failure, or where the check decides."""
    from unsnarl import subinterpreter

    return subinterpreter.is_here()


def _die_of_interrupt() -> None:
    """End by SIGINT, as a program that Ctrl-C reaches before it handles the signal."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _say(line: str) -> None:
    """Write one line on stderr, if there is one; not on what the program has put in its place."""
    if sys.__stderr__ is None:
        return
    try:
        sys.__stderr__.write(f"unsnarl: {' '.join(line.split())}\n")
        sys.__stderr__.flush()
    except (OSError, ValueError):
        return
