"""A thread waits in `select` for the only socket that it has."""

# first: waiting for a Unix socket in `serve`
# quiet
import select, socket, threading, time
ours, theirs = socket.socketpair()
def feed():
    for _ in range(12):
        time.sleep(0.05)
        theirs.send(b"x")
    theirs.close()
feeder = threading.Thread(target=feed, name="feeder")
feeder.start()
def serve():
    while True:
        readable, _, _ = select.select([ours], [], [], 1)
        if readable and not ours.recv(10):
            return
serve()
feeder.join()
