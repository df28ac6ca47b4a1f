"""The program waits for the processes of its pool, and they compute."""

# first: waiting for work or for other threads in `<module>`
# quiet
import multiprocessing
def task(size):
    return sum(range(size))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for _ in range(3):
            pool.map(task, [2_000_000] * 2)
