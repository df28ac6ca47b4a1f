"""Gives the API reference the docstrings of the native classes, which their stubs do not repeat.

An extension of griffe: it runs once for the package, after stubs and sources are read, and copies the docstring of
each class, method and attribute of the installed extension to the name of the stub that has none. From the docstrings
of modules it drops what begins with "Invariant:", which is for engineers.
Invariant: the docstring of a class or a function that a source or a stub has is never replaced.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe

NATIVE = "unsnarl._native"
STUBS = ("_native", "_native_gil", "_native_ipc", "_native_trace")


class RuntimeDocstrings(griffe.Extension):
    """Copies the docstrings of `unsnarl._native`."""

    def on_package(self, *, pkg: griffe.Module, **_kwargs: Any) -> None:
        """Give each public name of the stubs the docstring that it has at run time."""
        if pkg.name != "unsnarl":
            return
        native = importlib.import_module(NATIVE)
        for stub in STUBS:
            for name, member in pkg[stub].members.items():
                if not member.is_alias:
                    copy_docstrings(member, getattr(native, name, None))
        for module in pkg.modules.values():
            if module.docstring is not None:
                module.docstring.value = module.docstring.value.partition("Invariant:")[0].rstrip()


def copy_docstrings(documented: Any, running: object) -> None:
    """Copy the docstring of a running object, and of its members, to where there is none."""
    text = inspect.getdoc(running) if running is not None else None
    if text and not documented.has_docstring:
        documented.docstring = griffe.Docstring(text, parent=documented)
    if documented.is_class:
        for name, member in documented.members.items():
            if not name.startswith("_"):
                copy_docstrings(member, inspect.getattr_static(running, name, None))
