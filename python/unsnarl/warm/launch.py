"""Entry into the command's own interpreter: ``python [options] launch.py ROLE …``.

Unsnarl need not be installed there: this file's directory becomes the package ``_unsnarl_warm``.

Invariant: when the command's code runs, this module's frame is the only one of
ours beneath :func:`worker.worker.run`'s, and ``__main__`` is no longer this module (importing/main_module.py).
"""

import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import ModuleType


_SERVER = "_unsnarl_warm.serving.server"


def _siblings() -> None:
    here = __file__.rpartition("/")[0]
    package = type(sys)("_unsnarl_warm")
    package.__path__ = [here]
    package.__package__ = "_unsnarl_warm"
    sys.modules["_unsnarl_warm"] = package
    # `python FILE` has put this directory first on the path; not with -P or -I.
    if sys.path and sys.path[0] == here:
        del sys.path[0]


def _import_ours(name: str) -> "ModuleType":
    """Import a module of ours with only the standard library on the path.

    A module of the command may have the name of a standard one that is needed here; ``preload.covered`` checks that.
    """
    import os  # frozen: nothing on the path hides it

    path = sys.path[:]
    library = os.path.dirname(os.__file__)
    sys.path[:] = [entry for entry in path if (entry + "/").startswith(library + "/") and "-packages" not in entry]
    try:
        if name == _SERVER:
            _import_ours("_unsnarl_warm.importing.trampolines").import_ctypes()  # before any other module imports it
        return __import__(name, fromlist=["main"])
    finally:
        sys.path[:] = path


if __name__ == "__main__":
    if sys.hexversion < 0x030B0000:
        sys.exit("unsnarl warm needs Python 3.11 or later, this is " + sys.version.split(" ", maxsplit=1)[0])
    _siblings()
    if sys.argv[1] == "probe":
        _import_ours("_unsnarl_warm.learning.ending").run(sys.argv[2:], lambda: _import_ours("ctypes"))
    else:
        _job = _import_ours(_SERVER).main(sys.argv[2:])
        sys.modules["_unsnarl_warm.worker.worker"].run(_job)
