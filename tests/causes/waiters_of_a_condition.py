"""A hundred threads wait for one condition, all of them are woken each time; the native one passes them on in chains."""

# first: in `subscribe`
# finding: futex-storm, line cause, remedy unsnarl run --patch
import threading
changed, all_seen, turn, seen_by, is_over = threading.Condition(), threading.Condition(), 0, 0, False
def subscribe():
    global seen_by
    last = 0
    while not is_over:
        with changed:
            while turn == last and not is_over:
                changed.wait()  # cause
            last = turn
        with all_seen:
            seen_by += 1
            all_seen.notify()
threads = [threading.Thread(target=subscribe, name=f"subscriber-{number}") for number in range(100)]
for thread in threads:
    thread.start()
for _ in range(150):
    with changed:
        seen_by, turn = 0, turn + 1
        changed.notify_all()
    with all_seen:
        while seen_by < 100:
            all_seen.wait()
with changed:
    is_over = True
    changed.notify_all()
for thread in threads:
    thread.join()
