"""Three hundred threads sleep often, more than there are stacks for, and the main thread joins them for long."""

# first: sleeping in `work`
# not: lock-waits
# quiet
import threading, time
ends_s = time.monotonic() + 2.5
def work():
    while time.monotonic() < ends_s:
        time.sleep(0.05)
threads = [threading.Thread(target=work, name=f"sleeper-{number}") for number in range(300)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
