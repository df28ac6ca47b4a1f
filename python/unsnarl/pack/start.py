"""Start of a packed program: the entry points that a generated launcher calls.

Runs before the program's first line, so it imports only what a bare interpreter has loaded.
Invariant: a pack that cannot be used costs one line of warning, and the script runs without it. ``__main__`` is the
script; ``sys.argv`` and ``sys.path`` are as in a plain run.
"""

import _frozen_importlib
import _imp
import gc
import sys
from _frozen_importlib_external import PathFinder, SourceFileLoader
from posix import O_CLOEXEC, O_NONBLOCK, O_RDONLY, close, environ, fstat, getcwd, geteuid, readlink, stat
from posix import open as open_file

from . import container, finder

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_KIND, _REGULAR = 0o170000, 0o100000
"""S_IFMT and S_IFREG, written out: loading ``stat`` for two numbers costs too much."""
_WRITABLE_BY_OTHERS = 0o022
_UNTRACKED: "dict[str, Any]" = {"trackfd": False} if sys.version_info >= (3, 13) else {}
"""A map keeps a descriptor of its file, which the program would find among its own; newer interpreters need none."""
_TEARDOWN = "unsnarl.warm.worker.teardown"
"""The module that decides whether the end may be shortened; a warm worker uses it too. Found by its path: here the
packages have other names."""
_IMPORT: "Any" = _frozen_importlib  # what loads a module is private there, and has no type


def install(path: str, *, warns: bool = True) -> bool:
    """Make the path's finder search the pack first; returns False, after a warning, if the pack cannot be used.

    With ``UNSNARL=off`` in the environment it returns False without a warning.
    """
    if environ.get(b"UNSNARL") == b"off":
        return False
    try:
        entries, area, directories, roots = container.read(_map(path))
        finder.PackFinder(entries, area, directories, roots, _late_loader(entries)).stand_in()
    except Exception as problem:  # noqa: BLE001 (the script has to run after any failure)
        if warns:
            finder.warn(f"{path}: {problem}")
        return False
    if not warns:
        finder.be_silent()
    try:
        _hasten_end()
    except Exception:  # noqa: BLE001
        pass  # the installation is incomplete: the program ends as without a pack
    return True


def _late_loader(entries: "dict[str, tuple[Any, ...]]") -> "Any":
    """Return the loader of late modules, or the ordinary loader if the pack has no late modules."""
    if not any(entry[container.KIND] == container.LATE for entry in entries.values()):
        return finder.PackLoader
    try:
        from . import late
    except (ImportError, OSError):
        return finder.PackLoader  # the installation is incomplete: no module is late
    return late.LateLoader


def _map(path: str) -> memoryview:
    """Return the bytes of a pack. Raises OSError, or BadPack if another user may have planted the file."""
    searched: list[Any] = sys.path
    built = [one for one in searched if isinstance(one, str) and one.endswith("/lib-dynload")]
    mmap = _borrowed("mmap", built)
    file = open_file(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)  # opening a pipe without a writer must not block
    try:
        _refuse_foreign(fstat(file))
        return memoryview(mmap.mmap(file, 0, prot=mmap.PROT_READ, **_UNTRACKED))
    finally:
        close(file)


def _refuse_foreign(found: "Any") -> None:
    """Refuse a pack unless its owner already controls what runs here: this user, root, or the owner of this file."""
    if found.st_mode & _KIND != _REGULAR:
        raise container.BadPack("it is no regular file")
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise container.BadPack("others than its owner can write it; `chmod go-w` it, or pack again")
    if found.st_uid not in (geteuid(), 0) and found.st_uid != stat(__file__).st_uid:
        raise container.BadPack("it belongs to another user")


def _borrowed(name: str, directories: "list[str] | None" = None) -> "Any":
    """Import a module and remove it from ``sys.modules`` again, unless the program had imported it.

    If one of ``directories`` has the module, the rest of the path is not searched.
    """
    is_known = name in sys.modules
    spec = PathFinder.find_spec(name, directories) if directories and not is_known else None
    module = _IMPORT._load(spec) if spec else __import__(name)
    if not is_known:
        del sys.modules[name]
    return module


def _hasten_end() -> None:
    """Skip the final garbage collection where the program cannot observe it: the process frees its memory anyway.

    Exit functions run in reverse order, so the first one registered runs last. It freezes all objects: those in
    reference cycles, which nearly all objects of a module are, are then not collected.
    Streams are flushed and the status is passed on as ever.
    """
    # By its path: no directory is listed to find it, and no other module imports it.
    packages = __file__.rsplit("/", 3)[0]
    path = f"{packages}/{_TEARDOWN.replace('.', '/')}.py"
    loader = SourceFileLoader(f"{__package__}.teardown", path)
    teardown: Any = type(sys)(loader.name)
    teardown.__file__ = path
    loader.exec_module(teardown)

    def at_end() -> None:
        if teardown.is_unobserved():
            teardown.flush()
            gc.freeze()

    _borrowed("atexit").register(at_end)


def _forget_launcher(main: dict[str, object]) -> None:
    """Remove the launcher's names, the modules it has loaded, and its finder.

    The finder's function refers to ``__main__`` and would keep the objects of ``__main__`` alive.
    """
    for name in ("sys", "pack", "spec_from_file_location"):
        main.pop(name, None)
    known: Any = main.pop("known", ())
    for name in list(sys.modules):
        if name not in known and (name.partition(".")[0] == "_unsnarl_pack" or name == "gc"):
            del sys.modules[name]
    left: Any = sys.path_importer_cache.pop(__file__.rpartition("/")[0], None)
    if isinstance(left, type):
        type.__delattr__(left, "find_spec")  # immediately, not when the class is collected


class Unseen:
    """Removes the launcher's lines from the program's tracebacks; the interpreter prints the exception as usual.

    The launcher adds no line: it does not raise the exception again, it lets it pass.
    """

    def __enter__(self) -> None:
        """Begin to watch for exceptions."""

    def __exit__(self, _kind: object, problem: BaseException | None, trace: "TracebackType | None") -> None:
        """Remove the traceback entries above the program's first."""
        if problem is None:
            return
        own = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        here = __file__.rpartition("/")[0]
        while trace and (trace.tb_frame is own or trace.tb_frame.f_code.co_filename.rpartition("/")[0] == here):
            trace = trace.tb_next
        attribute: Any = BaseException.__traceback__
        attribute.__set__(problem, trace)  # even if its class overrides the attribute, as the interpreter does


def _hide_launcher() -> None:
    """Give the launcher's frame the file name of the import system, so that warnings pass over it.

    A warning with a stack level above the program's first frame would otherwise be attributed to the launcher. The
    launcher runs under the module name of the program, so the warning would be shown. In a plain run there is no
    such frame, and it is not shown.
    """
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    renamer: Any = _imp  # import systems use it to set the file name of a code object; it has no type
    renamer._fix_co_filename(frame.f_code, SourceFileLoader.exec_module.__code__.co_filename)


def run_module(path: str, main: dict[str, object]) -> "Any":
    """Prepare to run a module from the pack; return the function that runs it as ``python -m`` does."""
    _hide_launcher()
    if not sys.flags.safe_path:
        try:
            sys.path[0] = getcwd()
        except OSError:
            del sys.path[0]  # the interpreter adds no entry either if there is no current directory
    sys.argv[0] = "-m"
    install(path)
    _forget_launcher(main)
    import runpy

    as_main: Any = runpy  # the function that `python -m` calls is private and has no type
    return as_main._run_module_as_main


def run_archive(path: str, archive: str, main: dict[str, object]) -> "Any":
    """Prepare to run an archive with the pack; return the function that runs its ``__main__``.

    The archive's own modules are imported from it; those that it unpacks, and the standard library's, from the pack.
    """
    _hide_launcher()
    sys.argv[0] = archive
    sys.path[: 0 if sys.flags.safe_path else 1] = [archive]  # even with -P (pymain_run_python in Modules/main.c)
    install(path)
    _forget_launcher(main)
    import runpy

    as_main: Any = runpy  # as above
    return as_main._run_module_as_main


def _folder(script: str, file: int) -> str:
    """Return a script's directory with links resolved, as the interpreter does; by one system call if possible."""
    try:
        return readlink(f"/proc/self/fd/{file}").rpartition("/")[0]
    except OSError:
        import posixpath

        return posixpath.dirname(posixpath.realpath(script))


def run(path: str, script: str, main: dict[str, object]) -> object:
    """Prepare ``__main__`` for the script and return its code object."""
    _hide_launcher()
    sys.argv[0] = script
    with open(script, "rb") as file:
        source = file.read()
        if not sys.flags.safe_path:
            sys.path[0] = _folder(script, file.fileno())
    install(path)
    _forget_launcher(main)
    main["__file__"] = script
    main["__loader__"] = SourceFileLoader("__main__", script)
    main["__doc__"] = None
    return compile(source, script, "exec", dont_inherit=True)
