"""A digest is made of many chunks: each call releases the GIL for less than a millisecond, and computes."""

# first: computing in C code without the GIL in `hashes`
import hashlib
def hashes():
    digest, chunk = hashlib.sha512(), bytes(65536)
    for _ in range(12_000):
        digest.update(chunk)
    return digest.hexdigest()
hashes()
