"""Two threads and a queue with room for ten items: every item goes from one thread to the other.

    python queue_pair.py ITEMS [--library MODULE]

Runs under Python 2.7 as well. Prints seconds and items per second.
"""

import importlib
import json
import sys
import threading
import time

CAPACITY = 10

clock = getattr(time, "perf_counter", time.time)
items = int(sys.argv[1])
library = sys.argv[3] if len(sys.argv) > 3 else "queue" if sys.version_info[0] > 2 else "Queue"
queue = importlib.import_module(library).Queue(CAPACITY)
put = getattr(queue, "green_put", None) or queue.put
get = getattr(queue, "green_get", None) or queue.get


def produce():  # type: () -> None  # pyright: ignore[reportTypeCommentUsage] -- Python 2.7 knows no other
    """Put all items."""
    for item in range(items):
        put(item)


producer = threading.Thread(target=produce)
began_s = clock()
producer.start()
for _ in range(items):
    get()
producer.join()
elapsed_s = clock() - began_s

print(json.dumps({"elapsed_s": elapsed_s, "items_per_s": items / elapsed_s}))
