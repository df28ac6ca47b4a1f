"""``unsnarl cluster``: who holds what between machines, and how to take it away from them."""

from typing import TYPE_CHECKING

from unsnarl.cli.failure import CommandError
from unsnarl.cli.result import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from unsnarl.cluster import Cluster, Row

_USAGE_TEXT = """\
usage: unsnarl cluster list URL
       unsnarl cluster show URL NAME
       unsnarl cluster break URL NAME

List the locks, read/write locks, semaphores and leaders of a namespace that are held,
and by whom; show who holds one of them and who waits for it, in order; or take
it away from its holders.

  URL     etcd://HOST[:PORT]/NAMESPACE, postgresql://USER@HOST/DATABASE?namespace=NAME,
          valkey://HOST?namespace=NAME or redis://...
  NAME    the name, or KIND:NAME where several kinds have it (lock, rwlock, semaphore, leader)

A password can also stand in UNSNARL_CLUSTER_PASSWORD, out of sight of `ps`. A holder that
is cut off from the store learns of a `break` late: only the fence keeps it from harm.
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl cluster`` and carry them out."""
    match arguments:
        case []:
            raise CommandError("nothing to do, in `unsnarl cluster`", "see `unsnarl cluster --help`")
        case ["-h"] | ["--help"] | [_, "-h"] | [_, "--help"]:
            return show(_USAGE_TEXT)
        case ["list", url]:
            return _with(url, lambda cluster: show(table_of(_held(cluster.list()))))
        case ["show", url, name]:
            return _with(url, lambda cluster: show(table_of(_named(cluster.list(), name))))
        case ["break", url, name]:
            return _with(url, lambda cluster: _break(cluster, name))
        case ["list" | "show" | "break", *_]:
            raise CommandError(f"wrong arguments of `unsnarl cluster {arguments[0]}`", "see `unsnarl cluster --help`")
        case _:
            given = f"unexpected argument {arguments[0]!r}, in `unsnarl cluster`"
            raise CommandError(given, "it knows `list URL`, `show URL NAME` and `break URL NAME`")


def _with(url: str, act: "Callable[[Cluster], int]") -> int:
    """Connect, call ``act``, and turn what a user can cause into one line."""
    import os

    try:
        from unsnarl import cluster
    except ModuleNotFoundError as error:
        if error.name != "unsnarl_cluster":
            raise
        raise CommandError("unsnarl-cluster is not installed", "pip install 'unsnarl[cluster]'", 1) from None
    password = os.environ.get("UNSNARL_CLUSTER_PASSWORD")
    try:
        with cluster.connect(url, password=password) as connection:
            return act(connection)
    except ValueError as error:
        raise CommandError(str(error), "see `unsnarl cluster --help`") from None
    except cluster.StoreUnavailable as error:
        raise CommandError(str(error), "is it running, and the URL right?", 1) from None
    except cluster.ClusterError as error:
        raise CommandError(str(error), "docs/guide/cluster.md says what each store needs", 1) from None


def _named(rows: "list[Row]", name: str) -> "list[Row]":
    """Return the rows of one name, with or without its kind."""
    found = [row for row in rows if name in (row.name, f"{row.kind}:{row.name}")]
    if not found:
        raise CommandError(f"nobody holds or waits for {name!r}", "see `unsnarl cluster list`", 1)
    return found


def _held(rows: "list[Row]") -> "list[Row]":
    """Return the rows of those who hold."""
    return [row for row in rows if row.fence is not None]


def table_of(rows: "list[Row]") -> str:
    """Return the holders and waiters as a table, one line each in a pipe."""
    import time

    if not rows:
        return "nothing is held\n"
    lines = [("KIND", "NAME", "FENCE", "HOST", "PID", "SINCE", "TICKET")]
    for row in rows:
        mode = f"{row.kind} (shared)" if row.is_shared else row.kind
        fence = "waiting" if row.fence is None else str(row.fence)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.since_ms / 1000)) if row.since_ms else "-"
        name = row.name if row.name.isprintable() else repr(row.name)
        lines.append((mode, name, fence, row.host, str(row.pid), since, row.ticket))
    from unsnarl.report import columns

    return "".join(f"{line}\n" for line in columns.table(lines, columns.known(1), left=len(lines[0])))


def _break(cluster: "Cluster", name: str) -> int:
    held = _held(_named(cluster.list(), name))
    kinds = sorted({row.kind for row in held})
    if not kinds:
        raise CommandError(f"nobody holds {name!r}", "see `unsnarl cluster show`", 1)
    if len(kinds) > 1:
        raise CommandError(f"{name!r} is held as {' and '.join(kinds)}", f"say which: `{kinds[0]}:{name}`")
    broken = cluster.break_(kinds[0], held[0].name)
    return show(f"taken away from {broken} holder{'s' if broken != 1 else ''}\n")
