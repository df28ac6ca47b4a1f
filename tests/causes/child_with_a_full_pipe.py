"""A child fills the pipe of its errors, which nobody reads, and the parent waits for the child's end for two seconds."""

# first: waiting for a child process in `<module>`
# not: polling, contended-lock, convoy
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stderr.write('x' * 200_000)"], stderr=subprocess.PIPE)
try:
    child.wait(timeout=2)
except subprocess.TimeoutExpired:
    child.kill()
    child.communicate()
