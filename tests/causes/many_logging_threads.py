"""Thirty threads log to one file."""

# first: blocked on a lock in `work`
# not: polling, remedy unsnarl run --patch
import logging, os, tempfile, threading
folder = tempfile.TemporaryDirectory()
logging.basicConfig(filename=os.path.join(folder.name, "log.txt"), level=logging.INFO)
start = threading.Barrier(30)  # a quick thread would have ended before the next one starts
def work():
    start.wait()
    for number in range(200):
        logging.info("message %d", number)
threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(30)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
