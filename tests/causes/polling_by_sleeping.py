"""A thread looks for a file each millisecond."""

# first: sleeping in `wait_for_file`
# finding: polling, thread MainThread, line pauses, remedy none
import os, tempfile, threading, time
with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "ready")
    threading.Timer(0.8, lambda: open(path, "w").close()).start()
    def wait_for_file():
        while not os.path.exists(path):
            time.sleep(0.001)  # pauses
    wait_for_file()
