"""The first step of unsnarl in a process under ``unsnarl run`` or ``unsnarl trace``: installs, or waits with that."""
# `unsnarl.pth` imports this module while the interpreter starts, and only if one of these commands left its settings
# in the environment. The import itself is the call. It never raises, since the program must run unchanged either way.
#
# A scheduler of one thread has nothing to do, and its installation costs a fifth of an interpreter's start. So with the
# settings that nearly every process has, nothing is installed here. `late` installs before the first of these events:
#
# | event | why |
# |---|---|
# | Python code starts a thread (`_thread`) | a second thread can want the GIL |
# | an extension is found, but most of the standard library's | its code can start a thread that wants the GIL |
# | the process forks | the child inherits the installation, as it always did |
# | the process changes its root directory | unsnarl's files would be out of reach |
# | the program imports `unsnarl.gil` | it sees that the scheduler is installed |
#
# A function in place of each of these observes it, until one of them is called.
#
# Things that don't work: an audit hook sees all of this, but cannot be removed, and slows down every other event. A
# hook of `pthread_create` would need the native part, which costs more to load than the whole budget of a start.
#
# Every microsecond counts here: these are comments, since docstrings are loaded; the rest is in `late` and `run_start`;
# and this module is not in the package, whose own start would cost as much as this one.
#
# Invariants: this module imports only what every interpreter has loaded by then. While the installation waits,
# `sys.modules` is as it was, but for this module.

import _thread
import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

# How `run_settings` encodes settings that ask for nothing but the scheduler, up to the process id.
_USUAL = "kernel_hints=yes children=yes stats=no patch=no green=no pack= main_pid="
# The end of settings that the native command wrote, which starts no interpreter to find out.
_UNKNOWN = " abi=? prefix=?"
# How the names of extensions of the standard library begin whose code can bring another thread or interpreter.
_WATCHED = ("_ctypes", "_tkinter", "_interp", "_xx", "_test")

# What is observed while the installation waits: an owner, the name of its attribute, its value, and ours in its place.
observed: "list[tuple[Any, str, Any, Any]]" = []
# The settings of the installation that waits: the program may change its environment meanwhile.
settings = ""


def start() -> None:
    """Install the scheduler, or wait with that, if the environment addresses this interpreter."""
    global settings
    text = os.environ.get("UNSNARL_RUN")
    if not text or os.environ.get("UNSNARL") == "off":
        return
    # `site` runs in sub-interpreters too; before 3.12 none is told apart cheaply.
    is_main_interpreter = getattr(_thread, "_is_main_interpreter", None)
    if is_main_interpreter is not None and not is_main_interpreter():
        return
    address = f" abi={sys.implementation.cache_tag} prefix={sys.prefix}"
    if text.endswith(_UNKNOWN):
        text = text[: -len(_UNKNOWN)] + address
        if not text.endswith(f" main_pid={os.getpid()}{address}"):
            return  # for another process, whose interpreter did not read it
        os.environ["UNSNARL_RUN"] = text
    if text == f"{_USUAL}0{address}":  # for the first process that reads it, as `unsnarl enable` has it
        os.environ["UNSNARL_RUN"] = text = f"{_USUAL}{os.getpid()}{address}"
    is_usual = text.startswith(_USUAL) and text.endswith(address) and text[len(_USUAL) : -len(address)].isdecimal()
    if is_usual and _is_stock():
        settings = text
        _wait()
    else:
        __import__("unsnarl.run_start", fromlist=["__name__"]).start(text)


def complete() -> None:
    """Install the scheduler now, if the installation waits; raises nothing but what a signal handler raises."""
    if observed:
        __import__("unsnarl.late", fromlist=["__name__"]).install()


def _is_stock() -> bool:
    # A program that embeds the interpreter may have threads of its own from the start, and so may another file of
    # site-packages. Where the scheduler certainly cannot be installed, the line with the reason comes at the start.
    multiarch = getattr(sys.implementation, "_multiarch", "")
    has_gil_and_libc = "t" not in sys.abiflags and multiarch.endswith(("gnu", "musl"))
    try:
        is_alone = _thread._count() == 0  # pyright: ignore[reportPrivateUsage]
        return has_gil_and_libc and is_alone and os.path.samefile("/proc/self/exe", sys.executable)
    except OSError:
        return False


def _wait() -> None:
    import _frozen_importlib as importing
    import _frozen_importlib_external as importing_files

    # Another file of site-packages may have imported `threading`, which keeps these under names of its own.
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):
        _observe(_thread, name)
        _observe(sys.modules.get("threading", _thread), f"_{name}")
    for name in ("fork", "forkpty", "chroot"):
        _observe(os, name)

    def found(self: object, name: str, path: str) -> None:
        # It only looks on: no function of ours is on the stack when the extension is loaded.
        read(self, name, path)
        if name.startswith(_WATCHED) or not (name in sys.stdlib_module_names or name.startswith("unsnarl.")):
            complete()

    read: Any = _replace(importing_files.ExtensionFileLoader, "__init__", found)
    if any(name.startswith(_WATCHED) for name in sys.builtin_module_names):

        def create_module(spec: "Any") -> "Any":
            if spec.name.startswith(_WATCHED):
                complete()
            return create.__func__(spec)

        create: Any = _replace(importing.BuiltinImporter, "create_module", staticmethod(create_module))


def _observe(owner: "Any", name: str) -> None:
    def first(*arguments: "Any", **named: "Any") -> "Any":
        # An interpreter that ends has no finders, and later its modules' names are None: nothing can be imported then.
        if getattr(sys, "meta_path", None):
            complete()
        return original(*arguments, **named)

    if name in owner.__dict__:
        original = _replace(owner, name, first)


def _replace(owner: "Any", name: str, ours: "Any") -> "Any":
    original = owner.__dict__[name]
    setattr(owner, name, ours)
    observed.append((owner, name, original, ours))
    return original


start()
