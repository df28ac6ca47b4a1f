"""A collector for prometheus_client: the figures among a program's own metrics.

    from prometheus_client import REGISTRY
    from unsnarl.metrics.prometheus import Collector
    REGISTRY.register(Collector())

Needs prometheus_client (``pip install 'unsnarl[prometheus]'``). With its multi-process mode, each worker's figures need
an endpoint of unsnarl: ``unsnarl run --metrics``.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector as _Collector

from unsnarl.metrics import figures


class Collector(_Collector):
    """Collects the figures of this process at each scrape; thread-safe."""

    def collect(self) -> Iterator[Metric]:
        """Yield one metric for each family."""
        for family in figures.families():
            metric = Metric(family.name, family.purpose, family.kind)
            for sample in family.samples:
                metric.add_sample(family.name + sample.suffix, dict(sample.labels), sample.value)
            yield metric
