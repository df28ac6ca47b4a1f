"""Four clients hold one lock across I/O."""

# first: blocked on a lock in `client`
# finding: contended-lock, line receives, remedy none, across_io 1
import socket, threading, time
lock = threading.Lock()
ours, theirs = socket.socketpair()
def serve():
    while theirs.recv(1):
        time.sleep(0.02)
        theirs.send(b"y")
server = threading.Thread(target=serve, name="server")
server.start()
def client():
    for _ in range(6):
        with lock:
            ours.send(b"x")
            ours.recv(1)  # receives
threads = [threading.Thread(target=client, name=f"client-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ours.close()
server.join()
