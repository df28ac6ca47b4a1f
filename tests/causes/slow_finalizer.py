"""An object's ``__del__`` closes a connection slowly, and the function that drops the object waits for it."""

# first: sleeping in `Connection.__del__` (app.py:13)
# not: convoy, contended-lock
# quiet
import time


class Connection:
    """Takes its time to close."""

    def __del__(self) -> None:
        time.sleep(0.05)


def request() -> None:
    Connection()


for _ in range(20):
    request()
