"""A client makes thousands of requests of less than a millisecond each, and waits for each."""

# first: in `ask`
# quiet
import os, socket
ours, theirs = socket.socketpair()
if not os.fork():
    ours.close()
    while theirs.recv(1):
        sum(range(5_000))
        theirs.send(b"y")
    os._exit(0)
theirs.close()
def ask():
    ours.send(b"x")
    ours.recv(1)
for _ in range(5_000):
    ask()
ours.close()
os.wait()
