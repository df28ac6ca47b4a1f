"""A greenlet of gevent calls a sleep that nobody replaced, so the hub sleeps as well."""

# needs gevent
# first: sleeping in `ask`
# finding: loop-stall, thread MainThread, line cause, severity severe, remedy none
import time
import gevent
def ask():
    time.sleep(0.15)  # cause
def beat():
    while True:
        gevent.sleep(0.01)
gevent.spawn(beat)
for _ in range(8):
    gevent.spawn(ask).join()
    gevent.sleep(0.02)
