"""A thread receives from a socket that does not block, without a pause."""

# first: computing in `receive`
# finding: short-calls, thread receiver, remedy none
import socket, threading, time
ours, theirs = socket.socketpair()
ours.setblocking(False)
def receive():
    while True:
        try:
            if not ours.recv(10):
                return
        except BlockingIOError:
            pass
thread = threading.Thread(target=receive, name="receiver")
thread.start()
for _ in range(25):
    time.sleep(0.04)
    theirs.send(b"x")
theirs.close()
thread.join()
