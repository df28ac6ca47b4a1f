"""A client that takes a lock again and again, and writes to a resource that checks the fence.

    python worker.py URL RESOURCE TIMEOUT TTL

Prints one line of JSON for each operation once it has ended, and one before each write, since a client that is
killed then may have written. Never stops by itself.
"""

import json
import random
import socket
import sys
import time

from unsnarl import cluster


def log(op: str, begin: int, **facts: object) -> None:
    """Print one operation that has just ended."""
    print(json.dumps({"op": op, "begin": begin, "end": time.monotonic_ns(), **facts}), flush=True)


def write(resource: socket.socket, fence: int) -> None:
    """Write with a fence, and note whether the resource has accepted it."""
    begin = time.monotonic_ns()
    log("try", begin, fence=fence)
    resource.sendall(b"%d\n" % fence)
    log("write", begin, fence=fence, accepted=resource.recv(1) == b"y")


def hold_it(hold: cluster.Hold, resource: socket.socket, granted: int) -> None:
    """Write some times while the hold is good, and give it back."""
    checked = granted
    try:
        for _ in range(random.randrange(1, 4)):
            begin = time.monotonic_ns()
            hold.check()
            checked = begin
            log("check", begin, fence=hold.fence)
            write(resource, hold.fence)
            time.sleep(random.random() * 0.02)
        begin = time.monotonic_ns()
        hold.release()
        log("end", begin, fence=hold.fence, error="")
    except cluster.ClusterError as error:
        # Lost at some time since the last successful check; a release finds that out as well.
        log("end", checked, fence=hold.fence, error=f"{type(error).__name__}: {error}")


def main() -> None:
    """Work until killed."""
    url, path, timeout, ttl = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    resource = socket.socket(socket.AF_UNIX)
    resource.connect(path)
    jobs = None
    while True:
        begin = time.monotonic_ns()
        try:
            jobs = jobs or cluster.connect(url, timeout=3)
            hold = jobs.lock("contended", ttl=ttl).acquire(timeout=timeout)
        except cluster.ClusterError as error:
            log("acquire", begin, fence=None, error=f"{type(error).__name__}: {error}")
            time.sleep(0.05)
            continue
        log("acquire", begin, fence=hold and hold.fence, error="")
        if hold is not None:
            hold_it(hold, resource, time.monotonic_ns())


if __name__ == "__main__":
    main()
