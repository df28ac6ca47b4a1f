"""Sources are compiled by the functions with which the import system does so: that is no import."""

# first: computing in `compiles`
import pathlib, py_compile, tempfile
def compiles(source):
    for _ in range(60):
        py_compile.compile(str(source), str(source.with_suffix(".out")))  # compiles
with tempfile.TemporaryDirectory() as directory:
    source = pathlib.Path(directory, "many.py")
    source.write_text("".join(f"def f{number}(x):\n    return [x + {number}, x * {number}]\n" for number in range(600)))
    compiles(source)
