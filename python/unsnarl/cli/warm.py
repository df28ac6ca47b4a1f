"""``unsnarl warm``: manages shims and the servers behind them.

The fast verbs, ``run`` and ``start``, are native (crates/client). They arrive here only if the
native executable is missing, and the command runs plainly then.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import sys
import time
from collections.abc import Callable, Collection

from unsnarl.cli.failure import NOT_FOUND, CommandError
from unsnarl.cli.result import show, show_fields, show_wrapped
from unsnarl.warm import facts as facts_of
from unsnarl.warm import ledger
from unsnarl.warm.managing import runtime_directory, shims, stop
from unsnarl.warm.renewals import DIRECTORY

_USAGE_TEXT = """\
usage: unsnarl warm VERB [ARGUMENTS...]

Run Python commands from a process that has already imported them.

  enable CMD...        write a shim for each command
  disable CMD...       remove the shims
  shellenv             print shell code that puts the shims first on PATH:
                       eval "$(unsnarl warm shellenv)"
  run [--] CMD ARGS    run one command warm, without a shim
  run --require [--] CMD ARGS
                       the same, but end with status 69 if it would run plainly
  run --frozen [--] CMD ARGS
                       the same, but learn nothing: warm if CMD was learned before
  learn [--] CMD       learn a command now, and start no server
  start [--] CMD       start the server of a command and wait until it serves
  status               list shims, servers, and the account of each command
  stop [CMD]           stop running and starting servers, of one command or all
  why CMD              show what was learned about a command, and what keeps it
                       from being warm
  logs [CMD]           show the messages of the servers

UNSNARL=off in the environment makes every command plain.
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl warm`` and carry them out."""
    if not arguments or arguments[0] in ("-h", "--help"):
        return show(_USAGE_TEXT)
    verb, *rest = arguments
    if verb not in _VERBS:
        raise CommandError(f"no such verb: {verb!r}, in `unsnarl warm`", f"the verbs are: {', '.join(_VERBS)}")
    try:
        return _VERBS[verb](rest)
    except shims.ShimError as problem:
        raise CommandError(problem.what, problem.hint, 1) from None
    except OSError as problem:
        if problem.filename is None:
            raise
        hint = "check its owner, its permissions and the free disk space"
        raise CommandError(f"{problem.filename}: {problem.strerror}", hint, 1) from None


def _enable(names: list[str]) -> int:
    from unsnarl.cli.program import console_script

    _need(names, "enable")
    if not shims.is_native():
        raise CommandError(
            f"{shims.executable()} is not the native executable",
            "install unsnarl again with a Rust compiler available",
            1,
        )
    for name in names:
        script = os.path.abspath(name) if "/" in name else shims.find_plain(name)
        interpreter = console_script.interpreter_of(script) if script and os.path.isfile(script) else None
        if script is None or not os.path.exists(script):
            raise CommandError(f"no command named {name!r} on PATH", "activate its environment first", NOT_FOUND)
        if interpreter is None:
            raise CommandError(*console_script.no_python(script, "only Python commands can be warm"), 1)
        python = None if interpreter.is_looked_up else interpreter.path
        path = shims.write(os.path.basename(name), shims.text(python, interpreter.flags, script))
        show(f"{path} starts {script} warm\n")
    if shims.directory() not in os.get_exec_path():
        show('to have it first on PATH: eval "$(unsnarl warm shellenv)"\n')
    return 0


def _disable(names: list[str]) -> int:
    _need(names, "disable")
    for name in names:
        shims.remove(name)
    return 0


def _shellenv(arguments: list[str]) -> int:
    _refuse(arguments, "shellenv")
    return show(f'export PATH={shlex.quote(shims.directory())}:"$PATH"\n')


def _status(arguments: list[str]) -> int:
    _refuse(arguments, "status")
    directory = _safe_runtime_directory()
    names, servers, stems = shims.names(), runtime_directory.servers(directory), _stems(directory)
    for name in names:
        show(f"shim    {name}\n")
    for server in servers:
        show_fields(*described(server))
    _show_accounts(stems)
    if not (names or servers or stems):
        show("no shim, no server, and no command that was learned; `unsnarl warm why CMD` says what CMD waits for\n")
    return 0


def _show_accounts(stems: list[tuple[str, str]]) -> None:
    """Show what each command, and all of them, have spent and saved."""
    sums = [(name, ledger.read(stem)) for name, stem in stems]
    for name, one in sums:
        show_fields(f"account {name}", *_account(one))
    if len(sums) > 1:
        parts = [one for _, one in sums]
        total = ledger.Sums(
            spent_ms=sum(one.spent_ms for one in parts),
            saved_ms=sum(one.saved_ms for one in parts),
            calls=sum(one.calls for one in parts),
            asked_ms=sum(one.asked_ms for one in parts),
            failed_ms=sum(one.failed_ms for one in parts),
        )
        show_fields("account all", *_account(total))


def _account(sums: ledger.Sums) -> list[str]:
    times = {"saved": sums.saved_ms, "spent": sums.spent_ms}
    times |= {"of it on starts that failed": sums.failed_ms} if sums.failed_ms else {}
    times |= {"asked for": sums.asked_ms} if sums.asked_ms else {}
    return [f"{sums.calls} calls served", *(f"{what} {time_ms / 1000:.1f} s" for what, time_ms in times.items())]


def _stems(directory: str) -> list[tuple[str, str]]:
    """Return name and path, without suffix, of the files of each command that has a ledger."""
    found: list[tuple[str, str]] = []
    for entry in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        if entry.endswith(ledger.SUFFIX):
            stem = os.path.join(directory, entry.removesuffix(ledger.SUFFIX))
            facts = facts_of.load(f"{stem}.facts")
            found.append((facts.command if facts is not None else "?", stem))
    return found


def _learn(arguments: list[str]) -> int:
    """Have a command learned: by a start, whose server is stopped again unless it was there before."""
    import subprocess

    words = arguments[1:] if arguments[:1] == ["--"] else arguments
    _need(words, "learn")
    directory = _safe_runtime_directory()
    before = {server.stem for server in runtime_directory.servers(directory)}
    status = subprocess.run([shims.executable(), "warm", "start", "--", *words], check=False).returncode
    for server in runtime_directory.servers(directory):
        if server.stem not in before:
            server.stop()
    return status


def _safe_runtime_directory() -> str:
    """Return the runtime directory; raises if it must not be trusted."""
    directory = runtime_directory.path()
    unsafe = runtime_directory.why_unsafe(directory)
    if unsafe is not None:
        raise CommandError(f"{directory} is not used: {unsafe}", _cure(directory), 1)
    return directory


def _cure(directory: str) -> str:
    """Return what this user can do about a runtime directory that must not be trusted."""
    parent = os.path.dirname(directory)
    owners = [os.lstat(path).st_uid for path in (directory, parent)]
    if os.geteuid() == owners[0] and os.path.isdir(directory) and not os.path.islink(directory):
        return f"chmod 700 {directory}"
    is_shared = os.stat(parent).st_mode & stat.S_ISVTX and os.geteuid() not in (0, *owners)
    if is_shared or not os.access(parent, os.W_OK):
        return "set UNSNARL_WARM_DIR to an absolute path of your own; it is created with mode 700"
    return "remove it; it is created again with mode 700"


def described(server: runtime_directory.Server) -> list[str]:
    """Return what there is to say about a server, as fields."""
    info = server.info
    idle_s = max(0.0, time.monotonic() - server.last_used_s)
    counts = [f"{info.get(name, '0')} {what}" for name, what in _COUNTS.items()]
    memory = f"{server.memory_bytes / 1e6:.0f} MB"
    words = [f"pid {server.pid}", *counts, memory, f"idle {idle_s:.0f} s", f"{info.get('session', '')} session"]
    return [f"server  {info.get('command', '?')}", *words]


_COUNTS = {"requests": "requests", "workers": "running", "modules": "modules"}
"""A server's counts, by name, and what is counted."""


def _stop(arguments: list[str]) -> int:
    words = _words(arguments)
    names = [_named(words)] if words and _named(words) != words[0] else words
    request = stop.Stop(_safe_runtime_directory(), names)
    left = request.carry_out()
    if left:
        raise CommandError(
            f"still there after {stop.GIVE_UP_AFTER_S:.0f} s: {', '.join(left)}",
            "it may be in another pid namespace, or the machine is very busy; run `unsnarl warm stop` again",
            1,
        )
    if names and not request.has_found:
        _note(f"no server of {names[0]} was running or starting")
    return 0


def _why(arguments: list[str]) -> int:
    if arguments[:1] == ["--call"]:  # by the native client, which knows what this call meets
        return _why_this(arguments[1], arguments[2:])
    words = _words(arguments)
    _need(words, "why")
    records = _learned(_named(words))
    if not records:
        raise _unknown(words)
    for name, facts in records:
        show_wrapped(_explain(name, facts))
    return 0


def _why_this(call: str, words: list[str]) -> int:
    """Explain one call: ``call`` is what crates/client/src/why.rs has found about it."""
    said = " ".join(words)
    found: dict[str, str] = {what: rest for what, _, rest in (line.partition(" ") for line in call.splitlines())}
    if "plain" in found:
        return show_wrapped(f"{said} runs plainly:\n  {found['plain']}\n")
    stem = os.path.join(runtime_directory.path(), found.get("record", ""))
    facts = facts_of.load(f"{stem}.facts")
    if facts is None and (others := _learned(_named(words))):
        rows = [f"{said}: nothing is known about this call; about calls with another search path or interpreter:\n"]
        return show_wrapped("".join([*rows, *(_explain(name, other) for name, other in others)]))
    unpaid = _unpaid(found.get("calls", ""), words, is_learned=facts is not None)
    if facts is None and "frozen" in found:
        unpaid = "it is not learned, and with UNSNARL_WARM_FROZEN set it never is: unset it"
    if facts is None and not unpaid:
        raise _unknown(words)
    if facts is None:
        return show_wrapped(f"{said} runs plainly: {unpaid}\n")
    if facts.refusals:
        return show_wrapped(_explain(said, facts))
    if "refused" in found:
        refusals = _refusals(os.path.join(runtime_directory.path(), found["key"]))
        notes = [note for note in facts.notes if note.startswith("runs plainly")]
        rows = [f"  {why}\n" for why in refusals or notes]
        return show_wrapped(f"{said} runs plainly, with the settings of this call:\n{''.join(rows)}")
    state = "served" if "served" in found else "silent" if "silent" in found else ""
    varied = _varied(found.get("varied", ""), facts.variables)
    return show_wrapped(_explain(said, facts) + varied + f"  {unpaid or _STATES[state]}\n")


def _refusals(stem: str) -> list[str]:
    """Return why there can be no server of a key; nothing if that was not kept. ``stem`` is the path of its files."""
    try:
        with open(f"{stem}.why", encoding="utf-8", errors="backslashreplace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _varied(counted: str, read: Collection[str]) -> str:
    """Return what had several values in the calls that ran plainly, and what to do about it.

    ``counted`` holds three words for each part of their keys: its name, its number of values, that of calls. Of the
    variables, imports read those in ``read``, and the interpreter the others, so these cannot be ignored.
    """
    words = counted.split()
    rows: list[str] = []
    for name, values, calls in zip(words[::3], words[1::3], words[2::3], strict=True):
        each = round(int(calls) / int(values))
        what, cure = _PARTS.get(name, (name, _SAME + (_OR_IGNORE if name in read else "")))
        often = f"{each} call{'' if each == 1 else 's'} each"
        rows.append(f"  {what} had {values} values in {calls} calls that ran plainly, about {often}: {cure}\n")
    return "".join(rows)


def _unpaid(account: str, words: list[str], *, is_learned: bool) -> str:
    """Return that the calls so far have not paid for a server, and what to do; nothing if they have.

    ``account`` is how many calls there were, and how many more pay for it. Without any, there is nothing to say either.
    """
    calls, _, more = account.partition(" ")
    if more in ("", "0", "1") or calls == "0":
        return ""
    name = shlex.join(_program(words))
    lacking = "and no number of them does (UNSNARL_WARM_SPEND=0)" if more == "never" else f"about {more} more do"
    start = f"`unsnarl warm start -- {name}` starts a server now"
    if is_learned:
        what, cure = "no server waits for this call yet: its calls have not paid for one", start
    else:
        what = "it is not learned yet, since its calls have not paid for that"
        cure = f"{start}, `unsnarl warm learn -- {name}` only learns it"
    return f"{what}, {calls} so far, {lacking}; {cure}, and with UNSNARL_WARM_SPEND=any the next call does"


def _unknown(words: list[str]) -> CommandError:
    if shutil.which(words[0]) is None:
        return CommandError(f"no such command: {words[0]}", "check the name, the path and its permissions", NOT_FOUND)
    learn = f"`unsnarl warm learn -- {shlex.join(_program(words))}`"
    hint = f"unsnarl learns about a command once its calls have paid for that, or now, by {learn}"
    return CommandError(f"nothing is known about {' '.join(words)!r}", hint, 1)


_SAME = "keep it the same from call to call"
_OR_IGNORE = ", or, if imports only copy it, add it to the names in UNSNARL_WARM_IGNORE"
_PARTS = {
    "@directory": ("the working directory", "its imports read it, so call from one directory where you can"),
    "@streams": ("the kind of the standard streams", "call it with the same streams as terminals, pipes or files"),
    "@size": ("the size of the terminal", "its imports ask for it, so keep the window's size"),
    "@umask": ("the file mode mask", f"its imports read it, so {_SAME}"),
}
"""Parts of a key that are no variables (crates/client/src/server/parts.rs), and what to do about each."""
_STATES = {
    "served": "a server waits for this call",
    "silent": "its server did not answer in time just now: is it stopped, or the machine very busy?",
    "": "no server waits for this call yet; the next one like it starts one",
}


def _explain(name: str, facts: facts_of.Facts) -> str:
    head = f"{name} runs plainly:\n" if facts.refusals else f"{name} runs warm, {len(facts.modules)} modules ahead\n"
    rows = [f"  {why}\n" for why in facts.refusals]
    if facts.variables and not facts.refusals:
        rows.append(f"  a server for each value of: {' '.join(facts.variables)}\n")
    if (kept := sorted({*facts.kept} - {DIRECTORY})) and not facts.refusals:
        rows.append(f"  one server for all values, it only counts whether there is one: {' '.join(kept)}\n")
    if facts.asks_tty:
        rows.append("  a server for each kind of standard streams: its imports check whether they are terminals\n")
    if facts.asks_size:
        rows.append("  a server for each size of the terminal: its imports ask for it\n")
    if facts.asks_cwd:
        rows.append("  a server for each working directory: its imports read it\n")
    if facts.asks_umask:
        rows.append("  a server for each file mode mask: its imports read it\n")
    rows += [f"  set again in each run: {one.module}.{one.name} ({one.recipe})\n" for one in facts.renewals]
    rows += [f"  {note}\n" for note in facts.notes]
    return head + "".join(rows)


def _learned(command: str) -> list[tuple[str, facts_of.Facts]]:
    directory = runtime_directory.path()
    try:
        entries = sorted(os.listdir(directory))
    except OSError:
        return []
    found: list[tuple[str, facts_of.Facts]] = []
    for entry in entries:
        facts = facts_of.load(os.path.join(directory, entry)) if entry.endswith(".facts") else None
        if facts is not None and _is_called(facts.command, command):
            found.append((facts.command, facts))
    return found


def _words(arguments: list[str]) -> list[str]:
    """Return the words of a command, which may follow `--`, and may be one quoted word or several."""
    words = arguments[1:] if arguments[:1] == ["--"] else arguments
    return words[0].split() if len(words) == 1 and words[0].startswith("python") else words


def _named(words: list[str]) -> str:
    """Return the name under which facts of a command are stored: a script, or the module of ``python -m``."""
    return _program(words)[-1]


def _program(words: list[str]) -> list[str]:
    """Return the words of a command without its arguments."""
    name, *rest = words
    if not re.fullmatch(r"python[\d.]*t?", os.path.basename(name)) or not rest:
        return [name]
    return words[: 3 if rest[0] == "-m" else 2]


def _is_called(command: str, name: str) -> bool:
    return command == os.path.abspath(name) if "/" in name else os.path.basename(command) == name


def _logs(arguments: list[str]) -> int:
    directory = runtime_directory.path()
    words = _words(arguments)
    name = _named(words) if words else ""
    messages = ""
    for entry in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        if entry.endswith(".log"):
            facts = facts_of.load(os.path.join(directory, entry.removesuffix(".log") + ".facts"))
            with open(os.path.join(directory, entry), encoding="utf-8", errors="replace") as file:
                if not name or (facts is not None and _is_called(facts.command, name)):
                    messages += file.read()
                else:  # nothing was learned about it, or under another name
                    messages += "".join(line for line in file if f" {name}:" in line or f"/{name}:" in line)
    show(messages)
    if not messages:
        _note(f"there are no messages about {name}" if name else "there are no messages of servers")
    return 0


def _note(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")


def _run(words: list[str]) -> int:
    if words[:1] == ["--require"]:
        _start(words[1:])
    words = words[1:] if words[:1] == ["--"] else words
    _need(words, "run")
    try:
        os.execvp(words[0], words)
    except OSError as problem:
        raise CommandError(f"{words[0]}: {problem.strerror}", "check the name", NOT_FOUND) from None


def _start(words: list[str]) -> int:
    _need(words, "start")
    raise CommandError("there is no native executable here", "install unsnarl again with a Rust compiler available", 1)


def _need(arguments: list[str], verb: str) -> None:
    if not arguments:
        raise CommandError(f"no command given, in `unsnarl warm {verb}`", f"unsnarl warm {verb} CMD")


def _refuse(arguments: list[str], verb: str) -> None:
    if arguments:
        raise CommandError(f"unexpected argument {arguments[0]!r}, in `unsnarl warm {verb}`", "it takes none")


_VERBS: dict[str, Callable[[list[str]], int]] = {
    "enable": _enable,
    "disable": _disable,
    "shellenv": _shellenv,
    "run": _run,
    "start": _start,
    "learn": _learn,
    "status": _status,
    "stop": _stop,
    "why": _why,
    "logs": _logs,
}
