"""Threads feed one compressor, which has a lock of its own: no lock of the program is held."""

# first: blocked on a lock in `feed`
# finding: contended-lock, line cause, remedy none, across_io 0
import lzma, os, threading
packer = lzma.LZMACompressor(preset=6)
data = os.urandom(150_000)
def feed():
    for _ in range(4):
        packer.compress(data)  # cause
threads = [threading.Thread(target=feed, name=f"feeder-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
