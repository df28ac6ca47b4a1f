"""A package is slow to import, and a part of it that is missing is looked for again and again, which costs little."""

# first: importing `molasses`
# finding: slow-import, place molasses, remedy none
# not: repeated-import
import pathlib, sys, tempfile
folder = tempfile.TemporaryDirectory()
pathlib.Path(folder.name, "molasses").mkdir()
pathlib.Path(folder.name, "molasses", "__init__.py").write_text(
    "import time\nends_s = time.process_time() + 0.5\nwhile time.process_time() < ends_s:\n    pass\n"
)
sys.path.insert(0, folder.name)
for _ in range(25):
    try:
        import molasses.accelerator_that_is_missing
    except ImportError:
        pass
