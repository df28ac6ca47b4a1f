"""A thread waits for a flag in a loop that does nothing."""

# first: computing in `until_done`
# finding: spinning, thread MainThread, line asks, remedy none
import threading, time
done = False
def work():
    global done
    time.sleep(0.6)
    done = True
worker = threading.Thread(target=work, name="worker")
worker.start()
def until_done():
    while not done:  # asks
        pass
until_done()
worker.join()
