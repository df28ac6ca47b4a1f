"""One greenlet computes, and all others wait for it."""

# needs gevent
# first: computing in `compute`
# finding: loop-stall, thread MainThread, line adds, remedy none
import gevent
def compute():
    for _ in range(3):
        gevent.sleep(0.05)
        total = 0
        for number in range(6_000_000): total += number  # adds
def tick():
    for _ in range(20):
        gevent.sleep(0.02)
gevent.joinall([gevent.spawn(compute), gevent.spawn(tick)])
