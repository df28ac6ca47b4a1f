"""What takes the place of the native extension where there is none: the primitives in pure Python.

CPython finds the extension of this name first. Whatever else the extension has, the scheduler above all, is refused
here with the reason.
"""

from typing import NoReturn

from unsnarl.errors import UnsupportedInterpreter
from unsnarl.interpreter import HINT, description, is_cpython, reason_of

if is_cpython():
    raise ImportError(
        "unsnarl's native extension is not installed for this interpreter: run `pip install unsnarl` with it"
    )

from unsnarl import pure
from unsnarl.pure import *  # noqa: F403

__all__: list[str] = []
__all__ += pure.__all__


def __getattr__(name: str) -> NoReturn:
    """Refuse what only the extension has; names that the import system asks for are just missing."""
    if name.startswith("__"):
        raise AttributeError(f"module 'unsnarl._native' has no attribute {name!r}")
    raise UnsupportedInterpreter(f"this is {description()}: {reason_of(name)}", HINT)
