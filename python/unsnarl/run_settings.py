"""The settings that ``unsnarl run`` passes to the interpreter it starts, and to the children of that interpreter.

The settings are passed in one environment variable, as ``name=value`` words:

    slice_ms=2.5 kernel_hints=yes children=yes stats=main patch=no green=no pack= main_pid=4711 abi=cpython-313
    prefix=/venv

``unsnarl trace`` adds the directory to record to in hexadecimal digits, the number of 4 KiB chunks of a file, the time
at which the program was started, and whether the scheduler is installed:

    scheduler=no trace=2f746d702f74 trace_chunks=8192 executed_ns=123456789

``prefix`` is last and takes the rest, blanks included. Words with an unknown name are skipped, so that processes
before and after an upgrade of unsnarl understand each other.

Invariant: this module is loaded before the program's first line, so it imports only what every interpreter has loaded
by then.
"""

import os
import sys

VARIABLE = "UNSNARL_RUN"
"""The environment variable that carries the settings."""

SWITCH = "UNSNARL"
"""The kill switch: with the value ``off`` nothing of unsnarl is installed."""

STATS_CHOICES = ("no", "main", "all")
"""Which processes print statistics at their end: none, the main process, or all."""

_YES_NO = {"yes": True, "no": False}


def is_switched_off() -> bool:
    """Return whether ``UNSNARL=off`` switches unsnarl off."""
    return os.environ.get(SWITCH) == "off"


class RunSettings:
    """The options of one ``unsnarl run``, and the processes they are for.

    Attributes:
        slice_ms: the slice of CPU-bound threads in milliseconds, or None for
            the interpreter's switch interval.
        batch_share: the least share of the GIL of CPU-bound threads, or None for the default.
        kernel_hints: whether the kernel's scheduler receives hints about threads.
        children: whether processes started with the same interpreter take part.
        stats: one of STATS_CHOICES.
        patch: whether the standard library's primitives are replaced by native ones.
        green: whether threads run in user space, without the scheduler.
        scheduler: whether the scheduler is installed.
        trace: the directory to record to, or None.
        trace_chunks: 4 KiB chunks of a recording of the main process.
        executed_ns: CLOCK_MONOTONIC when the main process was started, or 0.
        metrics: the address of the figures, as ``host:port``, or an empty text.
        pack: the pack that modules are imported from, an absolute path, or an empty text.
        main_pid: the process that ``unsnarl run`` became; 0 for the first process that reads the settings.
        abi: the interpreter that the settings are for, as ``sys.implementation.cache_tag``.
        prefix: the environment that the settings are for, as ``sys.prefix``.
    """

    __slots__ = (
        "abi",
        "batch_share",
        "children",
        "executed_ns",
        "green",
        "kernel_hints",
        "main_pid",
        "metrics",
        "pack",
        "patch",
        "prefix",
        "scheduler",
        "slice_ms",
        "stats",
        "trace",
        "trace_chunks",
    )

    def __init__(  # noqa: PLR0913 -- one argument a setting, each with its name
        self,
        *,
        slice_ms: float | None = None,
        batch_share: float | None = None,
        kernel_hints: bool = True,
        children: bool = True,
        stats: str = "no",
        patch: bool = False,
        green: bool = False,
        scheduler: bool = True,
        trace: str | None = None,
        trace_chunks: int = 8192,
        executed_ns: int = 0,
        metrics: str = "",
        pack: str = "",
        main_pid: int | None = None,
        abi: str | None = None,
        prefix: str | None = None,
    ) -> None:
        """Default to this process, this interpreter and this environment."""
        self.slice_ms = slice_ms
        self.batch_share = batch_share
        self.kernel_hints = kernel_hints
        self.children = children
        self.stats = stats
        self.patch = patch
        self.green = green
        self.scheduler = scheduler
        self.trace = trace
        self.trace_chunks = trace_chunks
        self.executed_ns = executed_ns
        self.metrics = metrics
        self.pack = pack
        self.main_pid = os.getpid() if main_pid is None else main_pid
        self.abi = _this_abi() if abi is None else abi
        self.prefix = sys.prefix if prefix is None else prefix

    def is_main(self) -> bool:
        """Return whether this is the process that ``unsnarl run`` became."""
        return os.getpid() == self.main_pid

    def is_for_this_interpreter(self) -> bool:
        """Return whether the settings are for this interpreter and environment."""
        return self.abi == _this_abi() and _is_same_directory(self.prefix, sys.prefix)

    def prints_stats_here(self) -> bool:
        """Return whether this process prints statistics at its end."""
        return self.stats == "all" or (self.stats == "main" and self.is_main())

    def encode(self) -> str:
        """Return the text for the environment variable; ``decode`` is the inverse."""
        words = [] if self.slice_ms is None else [f"slice_ms={self.slice_ms!r}"]
        words += [] if self.batch_share is None else [f"batch_share={self.batch_share!r}"]
        words += [
            f"kernel_hints={_yes_no(self.kernel_hints)}",
            f"children={_yes_no(self.children)}",
            f"stats={self.stats}",
            f"patch={_yes_no(self.patch)}",
            f"green={_yes_no(self.green)}",
            *self._trace_words(),
            # In hexadecimal digits: a path may contain blanks and any other byte.
            f"pack={os.fsencode(self.pack).hex()}",
            *([f"metrics={self.metrics}"] if self.metrics else []),
            f"main_pid={self.main_pid}",
            f"abi={self.abi}",
            f"prefix={self.prefix}",
        ]
        return " ".join(words)

    def _trace_words(self) -> list[str]:
        words = [] if self.scheduler else ["scheduler=no"]
        if self.trace is None:
            return words
        directory = os.fsencode(self.trace).hex()
        return [*words, f"trace={directory}", f"trace_chunks={self.trace_chunks}", f"executed_ns={self.executed_ns}"]


def decode(text: str) -> RunSettings:
    """Return the settings that ``RunSettings.encode`` wrote.

    Raises:
        ValueError: a word is missing, or has an invalid value.
    """
    head, mark, prefix = text.partition("prefix=")
    if not mark or not prefix:
        raise ValueError("it names no prefix")
    words = {name: value for name, _, value in (word.partition("=") for word in head.split())}
    try:
        return RunSettings(
            slice_ms=float(words["slice_ms"]) if "slice_ms" in words else None,
            batch_share=float(words["batch_share"]) if "batch_share" in words else None,
            kernel_hints=_YES_NO[words["kernel_hints"]],
            children=_YES_NO[words["children"]],
            stats=_stats_choice(words["stats"]),
            patch=_YES_NO[words.get("patch", "no")],
            green=_YES_NO[words.get("green", "no")],
            scheduler=_YES_NO[words.get("scheduler", "yes")],
            trace=os.fsdecode(bytes.fromhex(words["trace"])) if "trace" in words else None,
            trace_chunks=int(words.get("trace_chunks", "8192")),
            executed_ns=int(words.get("executed_ns", "0")),
            pack=os.fsdecode(bytes.fromhex(words.get("pack", ""))),
            metrics=words.get("metrics", ""),
            main_pid=int(words["main_pid"]),
            abi=words["abi"],
            prefix=prefix,
        )
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} is missing or unknown") from None


def _stats_choice(word: str) -> str:
    if word not in STATS_CHOICES:
        raise KeyError(word)
    return word


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _this_abi() -> str:
    return sys.implementation.cache_tag or sys.implementation.name


def _is_same_directory(one: str, other: str) -> bool:
    """Compare directories by name, then by identity: a symbolic link may lead to the environment."""
    if one == other:
        return True
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False
