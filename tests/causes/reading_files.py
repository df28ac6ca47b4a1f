"""The program reads many small files."""

# quiet
import pathlib, tempfile
folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name, "small.txt")
path.write_text("x" * 1000)
def read():
    for _ in range(5_000):
        path.read_text()
read()
