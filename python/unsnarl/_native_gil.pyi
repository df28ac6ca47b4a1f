"""The part of the native module behind `unsnarl.gil`; use the public module instead."""

from collections.abc import Callable
from typing import Literal, TypedDict, final, type_check_only

@final
@type_check_only
class ClassCounters(TypedDict):
    waits: int
    served: int
    wait_p50_ns: int
    wait_p99_ns: int
    wait_max_ns: int
    wait_sum_ns: int
    wait_counts: tuple[int, ...]
    asks: int
    forced_drops: int
    barged: int

@final
@type_check_only
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

class Unsupported(Exception): ...  # noqa: N818 - a verdict; unsnarl.errors has the error

def install(
    slice_ns: int, batch_share_permille: int, kernel_hints: bool, fork_exec: Callable[..., int] | None = None
) -> None: ...
def uninstall() -> bool: ...
def is_installed() -> bool: ...
def hint(kind: Literal["interactive", "batch"] | None, /) -> Literal["interactive", "batch"] | None: ...
def stats() -> Counters | None: ...
def reset_stats() -> None: ...
