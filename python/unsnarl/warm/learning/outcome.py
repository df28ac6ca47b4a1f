"""The outcome of a learning run: the facts that follow from what was watched.

It says which variables decide something, which files and directories a server has to watch, and which C libraries read
variables of their own.

Invariant: what was read and is not shown to be kept only counts as deciding something.
"""

from __future__ import annotations

import os
import sys

from .. import facts as facts_of
from ..importing import origins, preload
from ..renewals import DIRECTORY
from . import module_lookups

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

    from .watch import Watch

# The directory of the whole package.
_OURS = __file__.rpartition("/learning/")[0] + "/"


def result(watch: Watch, command: preload.Command, found: list[str]) -> facts_of.Facts:
    """Return the facts that follow from a run which has loaded the modules ``found``."""
    result = facts_of.Facts()
    result.modules, result.origins = _in_order(watch, found), origins.of_all(found)
    _put_variables(result, watch)
    result.asks_tty, result.asks_size, result.asks_umask = watch.asks_tty, watch.asks_size, watch.asks_umask
    result.asks_signals, result.asks_sum = watch.asks_signals, bool(watch.walks.summing)
    result.renewals = watch.renewals
    result.notes, was_asked = list(dict.fromkeys(watch.notes)), watch.asks_cwd
    if not all(str(entry).startswith("/") for entry in sys.path):
        watch.asks_cwd = was_asked = True  # an import has put it on the path
        watch.relative_listed.add(".")
    elif DIRECTORY in result.kept:
        watch.asks_cwd = not watch.may_keep_directory
    watch.seen.asked.update(dict.fromkeys(_missing(watch), False))
    asked_here, listed_here, modules_here = _below_directory(watch) if was_asked else [set[str]()] * 3
    result.asks_cwd = watch.asks_cwd
    known = [*directories(), *filter(os.path.isdir, sorted(watch.seen.portions))]
    result.directories = known + sorted(watch.relative | asked_here)
    result.files = {path: facts_of.stamp_of(path) for path in files(watch, command)}
    if watch.asks_cwd:  # a server looks in its own
        watch.seen.leave_out(os.getcwd())
    beside, result.asked, listed = watch.seen.facts(set(result.files), set(known))
    result.listed = listed + sorted(watch.relative_listed | listed_here)
    result.files |= beside
    result.sought, result.enumerated = module_lookups.names(watch.sought), sorted(watch.seen.enumerated | modules_here)
    return result


def _in_order(watch: Watch, found: list[str]) -> list[str]:
    """Return what the run has asked for first: modules end in another order than they begin to be imported.

    One that is imported while another one runs may need what that one has changed before, such as ``sys.path``.
    """
    loaded = set(found)
    return list(dict.fromkeys([*(name for name in watch.owners.values() if name in loaded), *found]))


def _below_directory(watch: Watch) -> list[set[str]]:
    """Return what was queried or opened, listed, and enumerated, in the directory, as paths relative to it.

    An environment in it is in one place for all callers.
    """
    here = os.getcwd()
    fixed = tuple({prefix + "/" for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)})
    found = watch.seen.below(here, watch.opened)
    return [{path for path in paths if not f"{here}/{path}".startswith(fixed)} for paths in found]


def _put_variables(result: facts_of.Facts, watch: Watch) -> None:
    """Divide what was read into what decides something and what may be kept only."""
    decided = set(watch.variables)
    if watch.others is not None:
        decided |= watch.others.decided
    if watch.relative:
        decided.add(DIRECTORY)  # something in it was looked up
    _put_user_site(result, decided)
    result.variables = sorted(decided - {DIRECTORY})
    for name, count in watch.reads.items():
        if name not in decided:
            result.kept[name] = facts_of.Kept(count, name == DIRECTORY or name in watch.set_variables)
    result.late = sorted(watch.before.late())
    result.prefixes = sorted({*prefixes_of_libraries(), *watch.walks.prefixes})
    result.walks = sorted(watch.walks.prefixes)


def _put_user_site(result: facts_of.Facts, decided: set[str]) -> None:
    """Note where the user's own packages are or would be, if the search path has them."""
    site: Any = sys.modules.get("site")
    if not getattr(site, "ENABLE_USER_SITE", False):
        return
    home, path = os.path.expanduser("~"), str(site.USER_SITE)
    if path.startswith(home + "/"):
        result.user_site = path[len(home) + 1 :]
    else:
        decided.add("HOME")


# Beginnings of variables' names, by a part of the name of the library that reads them when it is loaded.
_OF_LIBRARIES = {
    "libssl": ("SSL_", "OPENSSL_"),
    "libcrypto": ("OPENSSL_",),
    "blas": ("OPENBLAS_", "OMP_", "GOTO_", "BLIS_", "MKL_"),
    "gomp": ("OMP_", "GOMP_"),
    "omp": ("OMP_", "KMP_"),
    "mkl": ("MKL_", "OMP_"),
    "cuda": ("CUDA_",),
    "numba": ("NUMBA_",),
}


def prefixes_of_libraries() -> tuple[str, ...]:
    """Return the beginnings of names of variables that a loaded library may have read."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        loaded = {os.path.basename(line.split(None, 5)[5].strip()) for line in maps if "/" in line}
    # OpenSSL may be linked into the module.
    loaded |= {"libssl" for name in loaded if name.startswith(("_ssl.", "_hashlib."))}
    found = {prefix for part, found in _OF_LIBRARIES.items() if any(part in one for one in loaded) for prefix in found}
    return tuple(sorted(found))


def files(watch: Watch, command: preload.Command) -> list[str]:
    """Return the files that the imports have loaded or opened; the command and its interpreter come first."""
    found = set(watch.opened) | {os.path.realpath(sys.executable), sys.prefix + "/pyvenv.cfg"}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str):
            found.add(path)
    with open("/proc/self/maps") as maps:
        found |= {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    kept = {facts_of.shortened(f) for f in found if f.startswith("/") and not f.startswith(("/proc/", "/dev/", _OURS))}
    # Cached code belongs to a source, which is watched; any plain run may write more of it.
    kept = {path for path in kept if "/__pycache__/" not in path}
    first = [command.name] if command.kind == "script" else []
    return [*first, sys.executable, *sorted(kept.difference([*first, sys.executable]))]


def directories() -> list[str]:
    """Return the directories in which modules are searched."""
    found = [entry for entry in sys.path if entry.startswith("/") and os.path.isdir(entry)]
    for module in list(sys.modules.values()):
        path = getattr(module, "__path__", None)
        try:
            found += [entry for entry in path or () if isinstance(entry, str) and os.path.isdir(entry)]
        except Exception:  # a lazy or broken package path: its files are still stamped
            continue
    return [entry for entry in dict.fromkeys(found) if not f"{entry}/".startswith(_OURS)]


def _missing(watch: Watch) -> list[str]:
    """Return the entries of the path that do not exist, and the files that would make packages of directories."""
    entries = [entry for entry in sys.path if entry.startswith("/") and not os.path.isdir(entry)]
    return entries + [f"{portion}/__init__.py" for portion in sorted(watch.seen.portions)]
