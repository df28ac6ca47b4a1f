"""The program waits for its children."""

# first: waiting for a child process in `<module>`
# quiet
import subprocess
for _ in range(4):
    subprocess.run(["sleep", "0.3"])
