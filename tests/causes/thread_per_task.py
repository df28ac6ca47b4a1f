"""The program starts a thread for each small task."""

# finding: thread-per-task, line starts, remedy none
import hashlib, threading
def task():
    hashlib.sha256(b"x").hexdigest()
for _ in range(600):
    thread = threading.Thread(target=task)
    thread.start()  # starts
    thread.join()
