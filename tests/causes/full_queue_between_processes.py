"""A producer waits for room in a queue between processes, whose consumer is slow."""

# first: waiting for room in a queue between processes in `main`
# finding: full-queue, line PUT, remedy none
import multiprocessing, time
def store(queue):
    while queue.get() is not None:
        time.sleep(0.02)
def main():
    queue = multiprocessing.get_context("fork").Queue(2)
    worker = multiprocessing.get_context("fork").Process(target=store, args=(queue,))
    worker.start()
    for number in range(60):
        queue.put(number)  # PUT
    queue.put(None)
    worker.join()
main()
