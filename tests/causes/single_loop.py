"""One thread computes in Python."""

# first: computing in `add`
# quiet
def add():
    total = 0
    for number in range(4_000_000):
        total += number
add()
