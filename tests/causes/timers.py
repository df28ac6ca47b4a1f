"""The program starts a Timer, and so a thread, for each deadline."""

# finding: thread-per-timer, line starts, remedy none
import threading, time
fired = []
timers = []
for number in range(300):
    timer = threading.Timer(0.2, fired.append, [number])
    timer.start()  # starts
    timers.append(timer)
for timer in timers:
    timer.join()
