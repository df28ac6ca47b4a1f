"""A function looks for an optional module with each call; it is not there, and a failure is not remembered."""

# first: importing `accelerator_that_is_missing`
# finding: repeated-import, thread MainThread, line cause, severity severe, remedy none
# not: slow-import
import time
ends_s = time.monotonic() + 1.5
def encode(rows):
    try:
        import accelerator_that_is_missing as json  # cause
    except ImportError:
        import json
    return json.dumps(rows)
while time.monotonic() < ends_s:
    encode([1])
