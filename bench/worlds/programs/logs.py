"""Many threads log: ``logs.py file|queue THREADS RECORDS``.

An operation is a record. ``file``: one FileHandler. ``queue``: a QueueHandler whose listener writes the file.
"""

from __future__ import annotations

import logging
import logging.handlers
import queue
import sys

from counted import report, together


def main() -> None:
    """Log and report."""
    kind, threads, records = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    file = logging.FileHandler("records.log")
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(message)s"))
    logger = logging.getLogger("measured")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    listener = None
    if kind == "queue":
        records_queue: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        logger.addHandler(logging.handlers.QueueHandler(records_queue))
        listener = logging.handlers.QueueListener(records_queue, file)
        listener.start()
    else:
        logger.addHandler(file)

    def work() -> None:
        for number in range(records):
            logger.info("record %d of %d", number, records)

    elapsed_s = together([work] * threads)
    if listener is not None:
        listener.stop()
    report(threads * records, elapsed_s)


if __name__ == "__main__":
    main()
