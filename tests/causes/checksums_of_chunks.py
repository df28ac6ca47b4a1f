"""A checksum is made of many chunks: each call releases the GIL for less than a millisecond, and computes."""

# first: computing in C code without the GIL in `sums`
import zlib
def sums():
    value, chunk = 0, bytes(range(256)) * 2048
    for _ in range(6_000):
        value = zlib.crc32(chunk, value)
    return value
sums()
