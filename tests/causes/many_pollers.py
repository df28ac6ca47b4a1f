"""Six threads look for a flag every half millisecond: one cause, one row."""

# first: sleeping in `look`
# finding: polling, line looks, remedy none, threads 6
import threading, time
done = False
def look():
    while not done:
        time.sleep(0.0005)  # looks
threads = [threading.Thread(target=look, name=f"looker-{number}") for number in range(6)]
for thread in threads:
    thread.start()
time.sleep(1.5)
done = True
for thread in threads:
    thread.join()
