"""The part of the native module behind `unsnarl.trace`; programs use the public module instead."""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, Self, final

def trace_start(
    path: str,
    chunks: int,
    text: str,
    executed_ns: int,
    interval_ns: int,
    *,
    has_counter: bool = True,
    fork_exec: Callable[..., int] | None = None,
) -> None: ...
def trace_stop() -> bool: ...
def trace_is_on() -> bool: ...
def trace_calibrate(code: CodeType, line: int, /) -> bool: ...
def trace_first_line() -> None: ...
def trace_name(ident: int, name: str, /) -> None: ...
def trace_read(path: str, /) -> str: ...

@final
class TimedBody:
    def __new__(cls, original: Callable[..., Any]) -> Self: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None, /) -> Callable[..., Any]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class TimedImport:
    def __new__(cls, original: Callable[..., Any], noticed: Sequence[str], notice: Callable[[str], object]) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class NamedStart:
    def __new__(cls, original: Callable[..., Any]) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class SampledRounds:
    def __new__(
        cls,
        original: Callable[..., Any],
        before: Callable[[Any], object | None],
        after: Callable[[Any, int], object],
        ready: Callable[[Any], object],
        long: Callable[[int, int, int, int], object],
    ) -> Self: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None, /) -> Callable[..., Any]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def watched(self) -> tuple[int, list[tuple[int, int, int | None]]]: ...
    def forget(self) -> None: ...

@final
class TraceSampler:
    def __new__(cls, directory: str) -> Self: ...
    def run(self) -> None: ...
    def stop(self) -> None: ...

__all__ = [
    "NamedStart",
    "SampledRounds",
    "TimedBody",
    "TimedImport",
    "TraceSampler",
    "trace_calibrate",
    "trace_first_line",
    "trace_is_on",
    "trace_name",
    "trace_read",
    "trace_start",
    "trace_stop",
]
