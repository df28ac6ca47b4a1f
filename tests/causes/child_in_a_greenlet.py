"""A greenlet waits for a child with the standard library's unpatched call."""

# needs gevent
# first: waiting for a child process in `build`
# finding: loop-stall, thread MainThread, line waits, remedy none
import subprocess, gevent
def beat():
    for _ in range(20):
        gevent.sleep(0.02)
def build():
    for _ in range(3):
        gevent.sleep(0.02)
        subprocess.run(["sleep", "0.2"])  # waits
gevent.joinall([gevent.spawn(beat), gevent.spawn(build)])
