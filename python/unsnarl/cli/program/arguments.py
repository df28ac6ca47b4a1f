"""Parses the command line of ``unsnarl run``: options of unsnarl and of python, a target, its arguments.

    unsnarl run [OPTION of unsnarl or python]... [--] TARGET [ARGUMENTS...]

Options of unsnarl are long. Options of python are parsed as python does (``Python/getopt.c`` and
``Python/initconfig.c`` of CPython): short, in clusters (``-um module``), with a value attached or
following (``-Wd``, ``-X dev``); ``-c`` and ``-m`` end the options. They are passed on as typed, so that
the program finds them in ``sys.orig_argv``.

Pure: a list of words in, a ``RunRequest`` or a ``CommandError`` out; ``target`` checks whether the
target exists.
"""

from unsnarl.cli.failure import CommandError
from unsnarl.run_settings import STATS_CHOICES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    TakeOption = Callable[[str, str | None, list[str]], bool]
    """Parses an option, given its name, its attached value and the reversed remaining words."""

MODULE, CODE, STDIN, FILE, COMMAND = "module", "code", "stdin", "file", "command"
"""The kinds of targets. A FILE can turn out to be a command; a COMMAND follows ``--``."""

SLICE_MS_RANGE = (0.1, 1000.0)
"""The accepted slices in milliseconds: a hand-over costs microseconds, and no thread
should wait for longer than a second."""

MOST_BATCH_SHARE_PERCENT = 90
"""The largest share of CPU-bound threads, as in ``unsnarl.gil.install``."""

METRICS_ADDRESS = "127.0.0.1:9464"
"""Where ``--metrics`` answers unless told otherwise; the port is that of OpenTelemetry's exporter for Prometheus."""

_PLAIN_FLAGS = frozenset("bBdEiIOPqRsuvx")
_VALUE_FLAGS = frozenset("WX")
_SWITCHES = {
    "--no-children": ("children", False),
    "--no-kernel-hints": ("kernel_hints", False),
    "--patch": ("patch", True),
    "--green": ("green", True),
}
"""Options without a value: the attribute that each sets, and its value."""

_LONG_WITH_VALUE = "--check-hash-based-pycs"
_HELP = "see `unsnarl run --help`"

_REFUSED_FLAGS = {
    "S": ("-S keeps unsnarl out of the program", "leave -S out, or run the program with `python -S`"),
    "V": ("-V makes python print its version and run nothing", "use `python -V`, or `unsnarl --version`"),
    "h": ("-h makes python print its help and run nothing", "use `python -h`, or `unsnarl run --help`"),
    "?": ("-? makes python print its help and run nothing", "use `python -h`, or `unsnarl run --help`"),
}


class RunRequest:
    """A parsed command line of ``unsnarl run``.

    Attributes:
        python_words: python's options as typed, up to and including ``-c CODE`` or ``-m MODULE``.
        python_flags: the letters among them.
        kind: MODULE, CODE, STDIN, FILE or COMMAND.
        target: the module, code, file or command; ``-`` for STDIN.
        arguments: the program's arguments.
        wants_help: whether help was requested; there is no target then.
        slice_ms, batch_share, kernel_hints, children, stats, patch, green, metrics, pack: as in ``RunSettings``.
    """

    __slots__ = (
        "arguments",
        "batch_share",
        "children",
        "green",
        "kernel_hints",
        "kind",
        "metrics",
        "pack",
        "patch",
        "python_flags",
        "python_words",
        "slice_ms",
        "stats",
        "target",
        "wants_help",
    )

    def __init__(self) -> None:
        """Start with the defaults."""
        self.python_words: list[str] = []
        self.python_flags: set[str] = set()
        self.kind = FILE
        self.target = ""
        self.arguments: list[str] = []
        self.wants_help = False
        self.slice_ms: float | None = None
        self.batch_share: float | None = None
        self.kernel_hints = True
        self.children = True
        self.stats = "no"
        self.patch = False
        self.green = False
        self.metrics = ""
        self.pack = ""


def parse(words: list[str], take_option: "TakeOption | None" = None) -> RunRequest:
    """Parse the words after ``unsnarl run``.

    Another verb that runs programs passes ``take_option``, which is called first for each
    long option and returns whether it has parsed the option.

    Raises:
        CommandError: the words are invalid; its status is 2.
    """
    request = _parse(words, take_option)
    if request.green and not request.wants_help and take_option is None:
        _check_green(request)
    return request


def parse_for(verb: str, words: list[str], take_option: "TakeOption") -> RunRequest:
    """Parse a command line of another verb that runs programs; errors name that verb.

    Raises:
        CommandError: the words are invalid; its status is 2.
    """
    try:
        request = parse(words, take_option)
    except CommandError as error:
        what, hint = (text.replace("unsnarl run", f"unsnarl {verb}") for text in (error.what, error.hint))
        raise CommandError(what, hint, error.status) from None
    if request.green and not request.wants_help:
        raise CommandError(
            "--green is for `unsnarl run` alone: green threads never wait for the GIL", f"see `unsnarl {verb} --help`"
        )
    return request


def _check_green(request: RunRequest) -> None:
    """Refuse options of the scheduler, which does not run with green threads."""
    given = {
        "--stats": request.stats != "no",
        "--slice": request.slice_ms is not None,
        "--batch-share": request.batch_share is not None,
        "--no-kernel-hints": not request.kernel_hints,
        "--metrics": bool(request.metrics),
    }
    for option, is_given in given.items():
        if is_given:
            raise CommandError(
                f"{option} is about the GIL scheduler, and --green runs without it",
                f"leave out {option}, or --green",
            )


def _parse(words: list[str], take_option: "TakeOption | None") -> RunRequest:
    request = RunRequest()
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            return _end_with_target(request, COMMAND, rest)
        if word == "-" or not word.startswith("-"):
            rest.append(word)
            return _end_with_target(request, STDIN if word == "-" else FILE, rest)
        if word in ("-h", "--help"):
            request.wants_help = True
            return request
        if word.startswith("--"):
            name, mark, attached = word.partition("=")
            if take_option is None or not take_option(name, attached if mark else None, rest):
                _take_long_option(request, word, rest)
        elif _take_cluster(request, word, rest):
            return request
    raise CommandError(
        "no program given, in `unsnarl run`", "name one: `unsnarl run app.py`, or `unsnarl run -m module`"
    )


def _end_with_target(request: RunRequest, kind: str, rest: list[str]) -> RunRequest:
    """Take the target and its arguments from the reversed remaining words."""
    if not rest:
        raise CommandError("no program given after `--`", "name one: `unsnarl run -- gunicorn app:app`")
    request.kind = kind
    request.target = rest.pop()
    request.arguments = rest[::-1]
    if not request.target:
        raise CommandError("the program's name is empty, in `unsnarl run`", "check the variable it came from")
    return request


def _take_cluster(request: RunRequest, word: str, rest: list[str]) -> bool:
    """Parse a word of python's short options; return True if the word ended the options."""
    request.python_words.append(word)
    for index, flag in enumerate(word[1:], start=1):
        if flag in _REFUSED_FLAGS:
            raise CommandError(*_REFUSED_FLAGS[flag])
        request.python_flags.add(flag)
        if flag in _PLAIN_FLAGS:
            continue
        if flag not in _VALUE_FLAGS and flag not in "cm":
            raise CommandError(f"unknown option -{flag}, in {word!r}", _HELP)
        value = word[index + 1 :] or _value_of(f"-{flag}", rest)
        if not word[index + 1 :]:
            request.python_words.append(value)
        if flag not in "cm":
            return False
        _set_inline_target(request, flag, value, rest)
        return True
    return False


def _set_inline_target(request: RunRequest, flag: str, value: str, rest: list[str]) -> None:
    request.kind = MODULE if flag == "m" else CODE
    request.target = value
    request.arguments = rest[::-1]
    if flag == "m" and not value:
        raise CommandError("the module's name is empty, in `unsnarl run -m`", "check the variable it came from")


def _take_long_option(request: RunRequest, word: str, rest: list[str]) -> None:
    """Parse an option of unsnarl, or the one long option of python that concerns a run."""
    name, mark, attached = word.partition("=")
    if word == _LONG_WITH_VALUE:  # python accepts its value only as the next word
        request.python_words += [word, _value_of(word, rest)]
    elif name in _VALUES:
        attribute, read = _VALUES[name]
        setattr(request, attribute, read(attached if mark else _value_of(name, rest)))
    elif name == "--metrics":
        request.metrics = _address(attached if mark else METRICS_ADDRESS)
    elif name == "--stats":
        request.stats = _stats(attached) if mark else "main"
    elif word in _SWITCHES:
        setattr(request, *_SWITCHES[word])
    elif name in _SWITCHES:
        raise CommandError(f"option {name} takes no value, in {word!r}", _HELP)
    else:
        raise CommandError(f"unknown option {name}, in `unsnarl run`", _HELP)


def _value_of(option: str, rest: list[str]) -> str:
    if not rest:
        raise CommandError(f"option {option} lacks its value, in `unsnarl run`", _HELP)
    return rest.pop()


def _slice_ms(text: str) -> float:
    """Parse a slice; a text that is no number counts as -1, which is out of range."""
    low, high = SLICE_MS_RANGE
    try:
        slice_ms = float(text)
    except ValueError:
        slice_ms = -1.0
    if not low <= slice_ms <= high:
        raise CommandError(
            f"--slice takes milliseconds from {low:g} to {high:g}, not {text!r}",
            "for example `--slice 5`, which is the interpreter's own",
        )
    return slice_ms


def _batch_share(text: str) -> float:
    """Parse a percentage with or without its sign; any other text counts as -1, which is out of range."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= MOST_BATCH_SHARE_PERCENT:
        raise CommandError(
            f"--batch-share takes a percentage from 0% to {MOST_BATCH_SHARE_PERCENT}%, not {text!r}",
            "for example `--batch-share 40%`; the default is 20%",
        )
    return percent / 100


def _path(text: str) -> str:
    if not text:
        raise CommandError("the pack's name is empty, in `unsnarl run --pack`", "check the variable it came from")
    return text


def _address(text: str) -> str:
    """Parse ``PORT`` or ``HOST:PORT``; a colon within a host needs brackets."""
    host, mark, port = text.rpartition(":")
    host = host if mark else METRICS_ADDRESS.rpartition(":")[0]
    is_host = bool(host) and not host.startswith("-") and (":" not in host or host.startswith("["))
    if not is_host or not host.isprintable() or " " in host or not port.isdecimal() or int(port) > 65535:
        raise CommandError(
            f"--metrics takes a port, or a host and a port, not {text!r}", "for example `--metrics=0.0.0.0:9464`"
        )
    return f"{host}:{port}"


def _stats(text: str) -> str:
    choices = STATS_CHOICES[1:]
    if text not in choices:
        raise CommandError(f"--stats takes {' or '.join(choices)}, not {text!r}", "for example `--stats=all`")
    return text


_VALUES: "dict[str, tuple[str, Callable[[str], object]]]" = {
    "--slice": ("slice_ms", _slice_ms),
    "--batch-share": ("batch_share", _batch_share),
    "--pack": ("pack", _path),
}
"""Options with a value: the attribute that each sets, and the function that reads the value."""
