"""A thread lets time pass by a `select` without descriptors."""

# first: waiting for a timeout in `pause`
# quiet
import select
def pause():
    for _ in range(10):
        select.select([], [], [], 0.06)
pause()
