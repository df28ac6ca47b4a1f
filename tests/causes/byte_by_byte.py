"""A file is read one byte at a time, each by a system call."""

# first: in short calls in `count`
# finding: short-calls, thread MainThread, line reads, remedy none
import os, pathlib, tempfile
folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name, "large.txt")
path.write_bytes(b"x" * 1_500_000)
def count():
    descriptor = os.open(path, os.O_RDONLY)
    while os.read(descriptor, 1):  # reads
        pass
count()
