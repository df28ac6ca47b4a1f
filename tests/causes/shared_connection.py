"""Handlers share one connection of sqlite3 with a long report, and the library serves one call at a time."""

# first: waiting for a lock in C code in `lookup`
# finding: shared-lock, line cause, severity severe, remedy none
# not: stuck, contended-lock, convoy
import sqlite3, threading, time
db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute("create table people (number integer, name text)")
db.executemany("insert into people values (?, ?)", [(number, str(number)) for number in range(5000)])
is_over = threading.Event()
def report():
    for _ in range(2):
        db.execute("select count(*) from people a, (select * from people limit 900) b where a.name < b.name").fetchall()
    is_over.set()
def lookup():
    while not is_over.is_set():
        db.execute("select name from people where number = 77").fetchone()  # cause
        time.sleep(0.001)
threads = [threading.Thread(target=report, name="report")]
threads += [threading.Thread(target=lookup, name=f"lookup-{number}") for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
