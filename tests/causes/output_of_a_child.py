"""The program waits for the output of its children in ``communicate``."""

# first: waiting for a child process in `<module>` (app.py:11)
# not: convoy, contended-lock
# quiet
import subprocess
import sys

for _ in range(3):
    child = subprocess.Popen([sys.executable, "-SIc", "import time; time.sleep(0.4)"], stdout=subprocess.PIPE)
    child.communicate()
