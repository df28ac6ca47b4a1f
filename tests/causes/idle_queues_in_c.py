"""Daemon threads wait for items that never come, at two lines, while the program does something else."""

# quiet
# first: computing in `work`
# finding: no-lock-contention
# not: stuck, contended-lock
import queue, threading, time
mails, images = queue.SimpleQueue(), queue.SimpleQueue()
def send():
    while True:
        mail = mails.get()
        print(mail)
def shrink(take=images.get):
    while True:
        image = take()
        print(image)
for target in (send, shrink):
    threading.Thread(target=target, name=target.__name__, daemon=True).start()
def work():
    end = time.monotonic() + 1.5
    total = 0
    while time.monotonic() < end:
        total += 1
work()
