"""A selector has one pipe, which another thread seldom writes to."""

# first: waiting for a pipe in `serve`
# quiet
import os, selectors, threading, time
end, begin = os.pipe()
selector = selectors.EpollSelector()
selector.register(end, selectors.EVENT_READ)
def feed():
    for _ in range(12):
        time.sleep(0.05)
        os.write(begin, b"x")
    os.close(begin)
feeder = threading.Thread(target=feed, name="feeder")
feeder.start()
def serve():
    while selector.select():
        if not os.read(end, 10):
            return
serve()
feeder.join()
