"""Eight threads share two permits, each held across a call."""

# first: blocked on a lock in `query`
# finding: contended-lock, line receives, remedy none
# not: remedy unsnarl run --patch
import socket, threading, time
connections = threading.BoundedSemaphore(2)
def serve(theirs):
    while theirs.recv(1):
        time.sleep(0.02)
        theirs.send(b"y")
def query(ours):
    with connections:
        ours.send(b"x")
        ours.recv(1)  # receives
def client(ours):
    for _ in range(6):
        query(ours)
    ours.close()
threads = []
for number in range(8):
    ours, theirs = socket.socketpair()
    threads.append(threading.Thread(target=serve, args=(theirs,), name=f"server-{number}"))
    threads.append(threading.Thread(target=client, args=(ours,), name=f"client-{number}"))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
