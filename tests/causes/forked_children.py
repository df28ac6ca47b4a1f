"""A program without a fault: it starts three children, which sleep, and waits for them."""

# first: waiting for a child process in `<module>`
# not: contended-lock, polling, slow-start
# quiet
import os, time
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        time.sleep(1)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
