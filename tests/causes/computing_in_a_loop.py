"""A loop computes: its condition is no question."""

# first: computing in `collatz`
# not: spinning
# quiet
def collatz(number):
    steps = 0
    while number != 1:
        if number % 2:
            number = 3 * number + 1
        else:
            number //= 2
        steps += 1
    return steps
max(map(collatz, range(1, 30_000)))
