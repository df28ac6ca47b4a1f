"""Native part of unsnarl; use the public modules instead."""

from typing import Final, Literal, TypedDict, final

@final
class ClassCounters(TypedDict):
    waits: int
    served: int
    wait_p50_ns: int
    wait_p99_ns: int
    wait_max_ns: int
    wait_sum_ns: int
    asks: int
    forced_drops: int
    barged: int

@final
class Counters(TypedDict):
    classes: dict[str, ClassCounters]
    hand_overs: int
    aged_picks: int
    share_picks: int
    lingers: int
    lingers_hit: int
    longest_hold_ns: int
    longest_hold_ident: int | None
    waiting: int

class Unsupported(Exception): ...

def install(slice_ns: int, kernel_hints: bool) -> None: ...
def uninstall() -> bool: ...
def is_installed() -> bool: ...
def hint(kind: Literal["interactive", "batch"] | None, /) -> Literal["interactive", "batch"] | None: ...
def stats() -> Counters | None: ...
def reset_stats() -> None: ...

__all__: Final[list[str]]
