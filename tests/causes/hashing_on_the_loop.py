"""A task hashes a large document on the event loop, in C code that releases the GIL."""

# first: computing in C code without the GIL in `digest`
# finding: loop-stall, thread MainThread, line hashes, remedy none
import asyncio, hashlib
def digest():
    hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 900_000)  # hashes
async def main():
    for _ in range(3):
        await asyncio.sleep(0.02)
        digest()
asyncio.run(main())
