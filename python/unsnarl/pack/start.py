"""Start a script with a pack: what a generated launcher calls.

Invariant: whatever is wrong with the pack, the script runs, with one line of
warning. ``__main__`` is the script, ``sys.argv`` and ``sys.path`` are as in a
plain run.
"""

import _frozen_importlib
import _imp
import gc
import sys
from _frozen_importlib_external import PathFinder, SourceFileLoader
from posix import O_CLOEXEC, O_NONBLOCK, O_RDONLY, close, environ, fstat, getcwd, geteuid, readlink, stat
from posix import open as open_file

from . import container, finder

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_KIND, _REGULAR = 0o170000, 0o100000
"""S_IFMT and S_IFREG: for two numbers no module is loaded."""
_WRITABLE_BY_OTHERS = 0o022
_UNTRACKED: "dict[str, Any]" = {"trackfd": False} if sys.version_info >= (3, 13) else {}
"""A map keeps a descriptor of its file, which the program would find among its own; newer interpreters need none."""
_IMPORT: "Any" = _frozen_importlib  # what loads a module is private there, and has no type


def install(path: str, *, warns: bool = True) -> bool:
    """Have the path's finder look into the pack first; False, with a warning, if it cannot be used.

    Likewise with ``UNSNARL=off`` in the environment, without one.
    """
    if environ.get(b"UNSNARL") == b"off":
        return False
    try:
        entries, area, directories, places = container.read(_map(path))
        finder.PackFinder(entries, area, directories, places, _late_loader(entries)).stand_in()
    except Exception as problem:  # noqa: BLE001 (whatever it is, the script has to run)
        if warns:
            finder.warn(f"{path}: {problem}")
        return False
    if not warns:
        finder.be_silent()
    try:
        _hasten_end()
    except Exception:  # noqa: BLE001
        pass  # an installation in which something is missing: it ends as without a pack
    return True


def _late_loader(entries: "dict[str, tuple[Any, ...]]") -> "Any":
    """Return the loader of the modules that are loaded late, or the ordinary one if there are none."""
    if not any(entry[container.KIND] == container.LATE for entry in entries.values()):
        return finder.PackLoader
    try:
        from . import late
    except (ImportError, OSError):
        return finder.PackLoader  # an installation in which something is missing: nothing is late
    return late.LateLoader


def _map(path: str) -> memoryview:
    """Return the bytes of a pack. Raises OSError, or BadPack if nobody may have meant it for this process."""
    searched: list[Any] = sys.path
    built = [one for one in searched if isinstance(one, str) and one.endswith("/lib-dynload")]
    mmap = _borrowed("mmap", built)
    file = open_file(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)  # for a pipe without a writer, nobody waits
    try:
        _refuse_foreign(fstat(file))
        return memoryview(mmap.mmap(file, 0, prot=mmap.PROT_READ, **_UNTRACKED))
    finally:
        close(file)


def _refuse_foreign(found: "Any") -> None:
    """Take a pack only from who decides anyway what runs here: this user, root, and whoever owns this very code."""
    if found.st_mode & _KIND != _REGULAR:
        raise container.BadPack("it is no regular file")
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise container.BadPack("others than its owner can write it; `chmod go-w` it, or pack anew")
    if found.st_uid not in (geteuid(), 0) and found.st_uid != stat(__file__).st_uid:
        raise container.BadPack("it belongs to another user")


def _borrowed(name: str, directories: "list[str] | None" = None) -> "Any":
    """Import a module that is as unknown to the program afterwards as it was before.

    If one of these directories has it, no other is looked into.
    """
    is_known = name in sys.modules
    spec = PathFinder.find_spec(name, directories) if directories and not is_known else None
    module = _IMPORT._load(spec) if spec else __import__(name)
    if not is_known:
        del sys.modules[name]
    return module


def _hasten_end() -> None:
    """Spare the interpreter to collect and free, at its end, what the end of the process frees anyway.

    The first exit function is called last. If nobody can notice, it puts all objects out of the collector's
    sight; what then is only in a cycle of references, as nearly everything of a module is, stays as it is.
    Streams are flushed and the status is passed on as ever.
    """
    # By its path: nothing is listed to find it, and nobody else imports it.
    path = f"{__file__.rpartition('/')[0].rpartition('/')[0]}/warm/teardown.py"
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
    """Take away the launcher's names, the modules it has loaded, and its finder.

    That one's function knows ``__main__``, whose objects would stay.
    """
    for name in ("sys", "pack", "spec_from_file_location"):
        main.pop(name, None)
    known: Any = main.pop("known", ())
    for name in list(sys.modules):
        if name not in known and (name.partition(".")[0] == "_unsnarl_pack" or name == "gc"):
            del sys.modules[name]
    left: Any = sys.path_importer_cache.pop(__file__.rpartition("/")[0], None)
    if isinstance(left, type):
        type.__delattr__(left, "find_spec")  # now, not when the class is collected


class Unseen:
    """Take the launcher's own lines out of what the program raises; the interpreter prints it as ever.

    No line is added on the way out: the launcher does not raise again, it lets pass.
    """

    def __enter__(self) -> None:
        """Be told of what is raised from here on."""

    def __exit__(self, _kind: object, problem: BaseException | None, trace: "TracebackType | None") -> None:
        """Leave out the lines above the program's first."""
        if problem is None:
            return
        own = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        here = __file__.rpartition("/")[0]
        while trace and (trace.tb_frame is own or trace.tb_frame.f_code.co_filename.rpartition("/")[0] == here):
            trace = trace.tb_next
        attribute: Any = BaseException.__traceback__
        attribute.__set__(problem, trace)  # past what its class has against it, as the interpreter does


def _hide_launcher() -> None:
    """Have the launcher's own frame pass for one of the import system's, from now on.

    A warning that is meant for whoever is further up than the program's first frame else comes to be the launcher's,
    whose module, by its name, is the program's: it would be shown where the interpreter has nobody to show it for.
    """
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    renamer: Any = _imp  # what import systems call to tell a module's code where it lies; it has no type
    renamer._fix_co_filename(frame.f_code, SourceFileLoader.exec_module.__code__.co_filename)


def run_module(path: str, main: dict[str, object]) -> "Any":
    """Prepare for a module from the pack; return what runs it, as ``python -m`` does."""
    _hide_launcher()
    if not sys.flags.safe_path:
        try:
            sys.path[0] = getcwd()
        except OSError:
            del sys.path[0]  # as the interpreter, which finds no directory to put there
    sys.argv[0] = "-m"
    install(path)
    _forget_launcher(main)
    import runpy

    as_main: Any = runpy  # what `python -m` calls is private, and has no type
    return as_main._run_module_as_main


def _folder(script: str, file: int) -> str:
    """Return the directory a script is in, past links, as the interpreter follows them: by one call if possible."""
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
