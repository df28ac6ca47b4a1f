"""The program computes in C code that releases the GIL."""

# first: computing in C code without the GIL in `digest`
# quiet
import hashlib
data = bytes(20_000_000)
def digest():
    for _ in range(12):
        hashlib.sha256(data)
digest()
