"""A loop merges two lists: its conditions are looked at in each round, but it changes them itself."""

# first: computing in `merge`
# not: spinning
# quiet
def merge(left, right):
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] < right[j]:
            merged.append(left[i])
            i += 1
        elif left[i] >= right[j]:
            merged.append(right[j])
            j += 1
    return merged
for _ in range(12):
    merge(range(0, 200_000, 2), range(1, 200_000, 2))
