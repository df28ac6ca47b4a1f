"""Everything a forked worker inherits from its server: two frozen dataclasses, and nothing else of the server.

Spares, workers and the end of a worker reach the server's data through :class:`Inherited` only, so this file is
the complete list. Descriptors are named by their numbers, which are the same in both processes.

Invariant: a field is never assigned after the fork. Objects that fields refer to (limits, temporary directories)
belong to the worker from the fork on: a change in the worker does not reach the server.
"""

from __future__ import annotations

from ..dataclass import dataclass

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Protocol

    from ..importing.environment_copies import Copies
    from ..importing.library import Functions
    from ..importing.main_module import MainModule
    from ..importing.preload import Command
    from ..importing.temporary import Directories
    from ..renewals import Renewal
    from .import_hooks import Finders
    from .limits import Limits
    from .pages import Rows

    class Freshness(Protocol):
        """Answers whether a loaded file may have changed; callable in a fork, reads no event."""

        def is_in_doubt(self) -> bool:
            """Whether an event waits that the server has not judged, or a file has changed without an event."""
            ...

        def have_moved(self) -> bool:
            """Whether a file has changed without an event."""
            ...


@dataclass(frozen=True)
class Imported:
    """The result of the command's imports: the code to run, and the state that each worker has to put right."""

    main: MainModule
    code: CodeType | str
    """The compiled script; empty for ``python -m`` and archives, whose module runpy finds."""
    argument_lists: list[tuple[list[object], int, bool]]
    """Copies of the arguments, as ``(list, index, is_bytes)``."""
    environment_delta: list[tuple[bytes, bytes | None]]
    """Variables that the imports have set, or removed (None)."""
    kept_variables: list[tuple[object, str, bytes, bool]]
    """Globals with the value of an ignored variable, as ``(module, global, variable, is_bytes)``."""
    line_buffering: list[bool | None]
    """For each standard stream what the imports have requested, None if nothing."""
    renewals: list[Renewal]
    temporary: Directories
    copies: Copies
    """Copies of the environment that the imports keep."""
    limits: Limits
    asks_signals: bool
    """Whether the imports have asked which signals are ignored. The server ignores none."""
    hideable: frozenset[str]
    """With ``-m``: loaded modules that a module in the caller's directory would hide."""
    finders: Finders
    late: frozenset[str]
    """What of the process imports have read that are made ahead of code of the command (``Facts.late``)."""
    changed_size: int
    """Size of ``COMMAND.changed`` up to which nothing in it concerns ``late``."""
    changed: frozenset[str]
    """Its lines."""
    is_observed: bool
    """Whether it was there."""
    functions: Functions
    """Those of the standard library, to notice which ones a run replaces."""
    baseline: frozenset[str]
    """Modules whose loading in a run is no news: loaded here, or considered while learning."""


@dataclass(frozen=True)
class Inherited:
    """The server's data in one forked process."""

    server_pid: int
    command: Command
    runtime_directory: str
    record: str
    """Path of the command's files, without suffix."""
    stem: str
    """Path of the key's files, without suffix."""
    key: bytes
    environment: dict[bytes, bytes]
    """That of the caller that has started the server: of the usual size, for rehearsals."""
    is_in_session: bool
    """Whether the server is in its callers' session, with their terminal."""
    handlers: dict[int, Any]
    """The imports' handlers for the signals that the server handles itself."""
    imported: Imported
    frozen: int
    """Objects that the server has frozen (``gc.freeze``)."""
    files: Freshness
    listener: int
    taken: int
    """Where a spare sends its number and the connection it has accepted."""
    doubt: int
    """Pipe with one byte while the server judges an event, more when a loaded file has changed."""
    connections: tuple[int, ...]
    """Those of other workers, which a spare closes."""
    pages: Rows
    """Pages that earlier runs have written."""
    is_surveyed: bool
    """Whether a run is to report its pages."""
