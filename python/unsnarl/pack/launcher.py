"""The program that is written beside a pack: it starts the command with it.

Invariant: its first lines carry the mark below, and only files that do are ever written over.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorder import Program

MARK = "made by `unsnarl pack`"
_HERE = os.path.dirname(os.path.abspath(__file__))


def text(program: Program, pack: str) -> str:
    """Return the text of a program that runs the script or module with the pack."""
    head = " ".join([f"#!{program.python}", *program.options])
    words = f"({pack!a}, {program.name!a}, globals())"
    return (
        f"{head}\n# Starts {program.name!a} with its pack; {MARK}.\n"
        "import sys\n"
        "from _frozen_importlib_external import spec_from_file_location\n"
        "class pack:  # finds the files of the package without listing its directory\n"
        f"    __path__ = [{_HERE!a}]\n"
        "    def find_spec(name, target=None, of=spec_from_file_location, directory=__path__[0]):\n"
        "        return of(name, f\"{directory}/{name.rpartition('.')[2]}.py\")\n"
        "sys.path_importer_cache[pack.__path__[0]] = pack\n"
        'sys.modules["_unsnarl_pack"] = type(sys)("_unsnarl_pack")\n'
        'sys.modules["_unsnarl_pack"].__path__ = pack.__path__\n'
        "import _unsnarl_pack.start as pack\n"
    ) + (f"pack.run_module{words}\n" if program.kind == "module" else f"exec(pack.run{words})\n")
