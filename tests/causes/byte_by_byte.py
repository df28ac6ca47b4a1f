"""A file is read one byte at a time, each by a system call."""

# first: in short calls in `count`
# finding: short-calls, thread MainThread, line reads, remedy none
import os, pathlib
pathlib.Path("large.txt").write_bytes(b"x" * 1_500_000)
def count():
    descriptor = os.open("large.txt", os.O_RDONLY)
    while os.read(descriptor, 1):  # reads
        pass
count()
