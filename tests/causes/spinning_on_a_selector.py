"""A hand-written event loop asks its selector with a timeout of 0, without a pause."""

# first: computing in `serve`
# finding: spinning, line asks, remedy none
import selectors, socket, threading, time
ours, theirs = socket.socketpair()
selector = selectors.DefaultSelector()
selector.register(ours, selectors.EVENT_READ)
def feed():
    for _ in range(20):
        time.sleep(0.03)
        theirs.send(b"x")
    theirs.send(b"q")
feeder = threading.Thread(target=feed, name="feeder")
feeder.start()
def serve():
    while True:
        for key, _ in selector.select(timeout=0):  # asks
            if b"q" in key.fileobj.recv(10):
                return
serve()
feeder.join()
