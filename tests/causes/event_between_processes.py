"""The program waits for an Event and a Condition of multiprocessing, which other processes notify: no lock is held."""

# first: waiting for another process in `await_children`
# finding: no-lock-contention
# not: shared-lock
import multiprocessing, time
context = multiprocessing.get_context("fork")
event, condition = context.Event(), context.Condition()
def notify():
    time.sleep(0.8)
    event.set()
    time.sleep(0.8)
    with condition:
        condition.notify_all()
def await_children():
    event.wait()
    with condition:
        condition.wait(60)
child = context.Process(target=notify)
child.start()
await_children()
child.join()
