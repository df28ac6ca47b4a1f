"""``unsnarl ipc``: lists and removes named segments of shared memory."""

from unsnarl.cli.failure import CommandError
from unsnarl.cli.result import show

_USAGE_TEXT = """\
usage: unsnarl ipc list
       unsnarl ipc rm [--force] NAME...

List the named segments of shared memory of this user's processes, with their
kind, their size and the processes that use them; or remove segments that no
process uses any more, which remain after a crash of all users.

  --force    also remove a segment that is in use: its users keep it, without a
             name
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl ipc`` and carry them out."""
    match arguments:
        case ["-h"] | ["--help"] | [_, "-h"] | [_, "--help"]:
            return show(_USAGE_TEXT)
        case ["list"]:
            return show(_listing())
        case ["rm", *rest]:
            names = [word for word in rest if word != "--force"]
            if names and not any(name.startswith("-") for name in names):
                return _remove(names, force="--force" in rest)
            raise CommandError("no segment named, in `unsnarl ipc rm`", "see `unsnarl ipc list`")
        case []:
            raise CommandError("nothing to do, in `unsnarl ipc`", "`unsnarl ipc list` lists segments")
        case _:
            given = f"unexpected argument {arguments[0]!r}, in `unsnarl ipc`"
            raise CommandError(given, "the verbs are `list` and `rm NAME...`")


def _listing() -> str:
    from unsnarl._native import ipc_directory, ipc_list

    try:
        rows = ipc_list()
    except OSError as error:
        raise CommandError(str(error), "mount a tmpfs there, or set UNSNARL_SHM", 1) from None
    if not rows:
        return f"no segments in {ipc_directory()}\n"
    lines = [("NAME", "KIND", "BYTES", "USERS")]
    for row in rows:
        users = " ".join(map(str, row["users"])) or ("in use" if row["used"] else "nobody")
        lines.append((row["name"], row["kind"] or "refused", str(row["size"]), users))
    from unsnarl.report import columns

    width = columns.known(1)
    table = columns.table(lines, width, left=4)
    problems = [line for row in rows if row["problem"] for line in columns.wrapped(row["problem"], width)]
    return "".join(f"{line}\n" for line in [*table, *problems])


def _remove(names: list[str], *, force: bool) -> int:
    from unsnarl._native import ipc_remove

    for name in names:
        try:
            outcome = ipc_remove(name, force)
        except (OSError, ValueError) as error:
            raise CommandError(str(error), "see `unsnarl ipc list`", 1) from None
        if outcome == "missing":
            raise CommandError(f"no segment named {name!r}", "see `unsnarl ipc list`", 1)
        if outcome == "used":
            raise CommandError(
                f"the segment {name!r} is in use", "`unsnarl ipc list` shows its users; --force removes it anyway", 1
            )
    return 0
