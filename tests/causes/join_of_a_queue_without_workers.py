"""A worker ends by an exception, so items of its queue are never done: `join` waits for ever."""

# finding: unfinished-queue, thread MainThread, line join, severity severe, remedy none
import os, queue, threading
queue = queue.Queue()
def work():
    while True:
        if queue.get() == 3:
            raise ValueError("three")
        queue.task_done()
threading.Thread(target=work, name="worker", daemon=True).start()
threading.Timer(1.5, os._exit, (0,)).start()
for number in range(6):
    queue.put(number)
queue.join()  # join
