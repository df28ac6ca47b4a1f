"""Entry into the command's own interpreter: ``python [options] launch.py ROLE …``.

Nothing of unsnarl needs to be installed there: the siblings of this file are
found beside it, under the name ``_unsnarl_warm``.

Invariant: when the command's code runs, this module's frame is the only one of
ours beneath :func:`worker.run`'s, and ``__main__`` is no longer this module.
"""

import sys


def _siblings() -> None:
    here = __file__.rpartition("/")[0]
    package = type(sys)("_unsnarl_warm")
    package.__path__ = [here]
    package.__package__ = "_unsnarl_warm"
    sys.modules["_unsnarl_warm"] = package
    # `python FILE` has put this directory first on the path; not with -P or -I.
    if sys.path and sys.path[0] == here:
        del sys.path[0]


if __name__ == "__main__":
    _siblings()
    if sys.argv[1] == "probe":
        __import__("_unsnarl_warm.probe", fromlist=["main"]).main(sys.argv[2:])
    else:
        __import__("_unsnarl_warm.trampolines", fromlist=["import_ctypes"]).import_ctypes()  # before anybody else
        _job = __import__("_unsnarl_warm.server", fromlist=["main"]).main(sys.argv[2:])
        __import__("_unsnarl_warm.worker", fromlist=["run"]).run(_job)
