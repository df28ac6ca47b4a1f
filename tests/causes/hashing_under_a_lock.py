"""Threads hold a lock while C code without the GIL computes."""

# first: blocked on a lock in `digest`
# finding: contended-lock, line computes, remedy none, across_io 0
import hashlib, threading
lock = threading.Lock()
def digest():
    with lock:
        hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 30_000)  # computes
def client():
    for _ in range(8):
        digest()
threads = [threading.Thread(target=client, name=f"client-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
