"""A thread writes to a SQLite database that another one keeps locked by a long transaction."""

# first: waiting for a pause in C code in `store`
# finding: polling, thread web, line inserts, remedy none
# not: convoy
import os, sqlite3, tempfile, threading, time
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "app.db")
sqlite3.connect(path).execute("create table entries (number)").connection.commit()
is_locked = threading.Event()
def collect():
    database = sqlite3.connect(path, isolation_level=None)
    for _ in range(3):
        database.execute("begin immediate")
        is_locked.set()
        time.sleep(0.5)
        database.execute("commit")
        time.sleep(0.15)
def store():
    database = sqlite3.connect(path, timeout=10, isolation_level=None)
    for number in range(3):
        is_locked.wait()
        database.execute("insert into entries values (1)")  # inserts
        is_locked.clear()
threads = [threading.Thread(target=collect, name="batch"), threading.Thread(target=store, name="web")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
