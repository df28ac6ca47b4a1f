"""The program imports a module that imports a slow one."""

# first: importing `molasses`
# finding: slow-import, place molasses, remedy none
# not: remedy unsnarl warm
import pathlib, sys
pathlib.Path("treacle.py").write_text("import time; time.sleep(0.4)")
pathlib.Path("molasses.py").write_text("import treacle")
sys.path.insert(0, ".")
import molasses
