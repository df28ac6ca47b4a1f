"""A process is joined before what it has put into a queue is read: it waits until that is read."""

# finding: unread-queue, thread MainThread, severity severe, remedy none
import multiprocessing
def work(queue):
    queue.put(bytes(1_000_000))
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=work, args=(queue,))
process.start()
process.join(1)  # for ever, in the program that this stands for
queue.get()
process.join()
