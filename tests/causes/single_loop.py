"""One thread computes in Python."""

# first: computing
# quiet
total = 0
for number in range(3_000_000):
    total += number
