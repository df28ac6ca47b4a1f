"""Six threads run a command each, again and again."""

# first: waiting for a child process in `convert`
# not: contended-lock, convoy
# quiet
import subprocess, threading
def convert():
    for _ in range(6):
        subprocess.run(["sleep", "0.2"], check=True)
threads = [threading.Thread(target=convert, name=f"converter-{number}") for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
