"""Two threads pass an item to and fro through two queues of C code."""

# first: `play`
# not: contended-lock
import queue, threading
there, back = queue.SimpleQueue(), queue.SimpleQueue()
def answer():
    while there.get() is not None:
        back.put(1)
def play():
    for number in range(30_000):
        there.put(number)
        back.get()
    there.put(None)
thread = threading.Thread(target=answer, name="answers")
thread.start()
play()
thread.join()
