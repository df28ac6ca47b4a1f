"""Each request collects a large heap, so the time is that of the collector, at the line that calls it."""

# first: computing in `request` (app.py:19)
# not: convoy, contended-lock
import gc


class Node:
    """Refers to itself, as many objects of a large heap do."""

    def __init__(self) -> None:
        self.me = self


kept = [Node() for _ in range(200_000)]


def request() -> None:
    gc.collect()


for _ in range(40):
    request()
