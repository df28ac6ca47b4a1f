"""The parent of a pool spends its time on pickling the arguments."""

# first: waiting for another process
# finding: pickling, thread QueueFeederThread, remedy none
import concurrent.futures, multiprocessing
def total(rows):
    return len(rows)
def main():
    rows = [{"value": number, "name": "x" * 20, "tags": ["a", str(number)]} for number in range(40_000)]
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        for _ in range(8):
            pool.submit(total, rows).result()
if __name__ == "__main__":
    main()
