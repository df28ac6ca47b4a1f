"""Each Timer starts the next one, so there is a thread for each round."""

# finding: thread-per-timer, line starts, remedy none
# not: polling
import threading
rounds = 0
is_over = threading.Event()
def tick():
    global rounds
    rounds += 1
    if rounds < 300:
        threading.Timer(0.003, tick).start()  # starts
    else:
        is_over.set()
tick()
is_over.wait()
