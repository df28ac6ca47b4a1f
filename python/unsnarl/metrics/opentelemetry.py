"""Instruments of OpenTelemetry for the figures.

    from opentelemetry import metrics
    from unsnarl.metrics.opentelemetry import instrument
    instrument(metrics.get_meter("app"))

Needs the API of OpenTelemetry (``pip install 'unsnarl[opentelemetry]'``), which knows no observable histogram: waits
are two counters, ``unsnarl.gil.wait.count`` and ``unsnarl.gil.wait.seconds``. Their quotient is the mean wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from unsnarl.metrics import figures


def instrument(meter: Meter) -> None:
    """Create an observable instrument of ``meter`` for each figure; call it once in a process."""
    for family in figures.families():
        if family.kind == figures.HISTOGRAM:
            for suffix, name, unit in (("_count", "count", "1"), ("_sum", "seconds", "s")):
                callback = _callback(family.name, suffix)
                meter.create_observable_counter(f"unsnarl.gil.wait.{name}", [callback], unit, family.purpose)
        else:
            name = family.name.replace("_", ".", 2 if "_gil_" in family.name else 1)
            suffix = "_total" if family.kind == figures.COUNTER else ""
            make = meter.create_observable_counter if suffix else meter.create_observable_gauge
            unit = "s" if name.endswith("_seconds") else "1"
            make(name, [_callback(family.name, suffix)], unit, family.purpose)


def _callback(name: str, suffix: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        for family in figures.families():
            if family.name == name:
                yield from (Observation(s.value, dict(s.labels)) for s in family.samples if s.suffix == suffix)

    return observe
