"""A buffer is copied with each part that it gets. The operator keeps the GIL, and a later line drops it."""

# first: computing in `Buffer.feed` (app.py:11)
# not: contended-lock
import threading, time
class Buffer:
    def __init__(self):
        self.data = b""

    def feed(self, part):
        self.data = self.data + part  # cause
def beat():
    while not done.wait(0.02):
        pass
done = threading.Event()
beating = threading.Thread(target=beat, name="beat")
beating.start()
part, buffer, ends_s = b"x" * 20_000, Buffer(), time.monotonic() + 2
while time.monotonic() < ends_s:
    buffer.feed(part)
    if len(buffer.data) > 60_000_000:
        buffer = Buffer()
done.set()
beating.join()
