"""``unsnarl gil probe``: checks whether the scheduler can be installed here, and reports the reason if not."""

import sys

from unsnarl.cli.failure import CommandError
from unsnarl.cli.result import show, show_wrapped

_USAGE_TEXT = """\
usage: unsnarl gil probe

Install the scheduler in this interpreter, uninstall it, and report the outcome:
status 0 and one line on stdout, or status 1 and the reason on stderr.
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl gil`` and carry them out."""
    if arguments in (["-h"], ["--help"], ["probe", "-h"], ["probe", "--help"]):
        return show(_USAGE_TEXT)
    if arguments != ["probe"]:
        given = f"unexpected argument {arguments[-1]!r}" if arguments else "nothing to do"
        raise CommandError(f"{given}, in `unsnarl gil`", "the only use is `unsnarl gil probe`")
    return _probe()


def check(here: str) -> None:
    """Install the scheduler and uninstall it.

    Raises:
        CommandError: that is not possible, in the interpreter that ``here`` names.
    """
    from unsnarl.errors import UnsupportedInterpreter

    try:
        from unsnarl import gil

        gil.install()
        gil.uninstall()
    except UnsupportedInterpreter as refusal:
        raise CommandError(f"{refusal.reason}, in {here}", refusal.hint, 1) from None
    except ImportError as error:
        raise CommandError(
            f"the native part of unsnarl does not load in {here}: {error}",
            "install unsnarl again with this interpreter: `python -m pip install --force-reinstall unsnarl`",
            1,
        ) from None


def _probe() -> int:
    from unsnarl.run_settings import is_switched_off

    here = f"{_interpreter_name()} ({sys.executable})"
    if is_switched_off():
        raise CommandError(f"unsnarl is switched off for {here}", "unset UNSNARL, or do not set it to off", 1)
    check(here)
    return show_wrapped(f"ok: the GIL scheduler can be installed in {here}\n")


def _interpreter_name() -> str:
    """Return the implementation and its version, such as ``CPython 3.13.0``."""
    name = {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{name} {version}"
