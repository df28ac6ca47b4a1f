"""The program imports a module that imports a slow one."""

# first: importing `molasses`
# finding: slow-import, place molasses, remedy none
# not: remedy unsnarl warm
import pathlib, sys, tempfile
folder = tempfile.TemporaryDirectory()
pathlib.Path(folder.name, "treacle.py").write_text("import time; time.sleep(0.4)")
pathlib.Path(folder.name, "molasses.py").write_text("import treacle")
sys.path.insert(0, folder.name)
import molasses
