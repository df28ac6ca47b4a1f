"""The program waits for its children."""

# first: waiting for a child process in `<module>`
# quiet
import subprocess
for _ in range(3):
    subprocess.run(["sleep", "0.2"])
