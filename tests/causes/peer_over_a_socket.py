"""The program waits for a peer in another process."""

# first: waiting for a Unix socket in `ask`
# quiet
import os, socket, time
ours, theirs = socket.socketpair()
if os.fork() == 0:
    ours.close()
    while theirs.recv(1):
        time.sleep(0.1)
        theirs.send(b"y")
    os._exit(0)
theirs.close()
def ask():
    ours.send(b"x")
    ours.recv(1)
for _ in range(6):
    ask()
ours.close()
