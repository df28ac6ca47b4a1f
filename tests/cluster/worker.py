"""A client that takes a lock again and again, and writes to a resource that checks the fence.

    python worker.py URL RESOURCE TIMEOUT TTL

Prints one line of JSON for each acquisition. Never stops by itself.
"""

import json
import random
import socket
import sys
import time

from unsnarl import cluster


def write(resource: socket.socket, fence: int) -> bool:
    """Write with a fence; tell whether the resource has accepted it."""
    resource.sendall(b"%d\n" % fence)
    return resource.recv(1) == b"y"


def hold_it(hold: cluster.Hold, resource: socket.socket) -> int:
    """Write some times while the hold is good; return when the last successful check began."""
    checked = 0
    for _ in range(random.randrange(1, 4)):
        begin = time.monotonic_ns()
        hold.check()
        checked = begin
        write(resource, hold.fence)
        time.sleep(random.random() * 0.02)
    hold.release()
    return checked


def main() -> None:
    """Work until killed."""
    url, path, timeout, ttl = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    resource = socket.socket(socket.AF_UNIX)
    resource.connect(path)
    jobs = None
    while True:
        line = {"begin": time.monotonic_ns(), "fence": None, "error": "", "checked": 0, "end": 0}
        try:
            jobs = jobs or cluster.connect(url, timeout=3)
            hold = jobs.lock("contended", ttl=ttl).acquire(timeout=timeout)
            line["end"] = time.monotonic_ns()
            if hold is not None:
                line["fence"] = hold.fence
                line["checked"] = hold_it(hold, resource)
        except cluster.ClusterError as error:
            line["end"] = line["end"] or time.monotonic_ns()
            line["error"] = f"{type(error).__name__}: {error}"
            time.sleep(0.05)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
