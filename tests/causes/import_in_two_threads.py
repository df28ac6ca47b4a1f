"""Two threads import the same module, which waits for something."""

# first: sleeping in
# finding: slow-import, place settings
import os, sys, tempfile, threading
folder = tempfile.TemporaryDirectory()
sys.path.insert(0, folder.name)
with open(os.path.join(folder.name, "settings.py"), "w") as file:
    file.write("import time\ntime.sleep(0.8)\n")
def load():
    import settings
threads = [threading.Thread(target=load, name=name) for name in ("first", "second")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
