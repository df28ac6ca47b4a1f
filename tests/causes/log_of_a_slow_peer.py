"""A handler writes the log of six threads to a socket whose reader is slow, and holds its lock meanwhile."""

# first: blocked on a lock in `serve`
# finding: contended-lock, line cause, across_io 1, severity severe, remedy none
import logging, socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
def collect():
    peer, _ = server.accept()
    while peer.recv(4096):
        time.sleep(0.01)
threading.Thread(target=collect, name="collector", daemon=True).start()
class ToSocket(logging.Handler):
    def __init__(self):
        super().__init__()
        self.connection = socket.create_connection(server.getsockname())
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def emit(self, record):
        self.connection.sendall(self.format(record).encode())  # cause
log = logging.getLogger("requests")
log.addHandler(ToSocket())
log.setLevel(logging.INFO)
ends_s = time.monotonic() + 2.5
def serve():
    while time.monotonic() < ends_s:
        log.info("a request with its body: %s", "x" * 3000)
threads = [threading.Thread(target=serve, name=f"web-{number}") for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
