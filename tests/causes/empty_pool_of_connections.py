"""Eight threads make requests through a pool of two connections."""

# needs urllib3
# first: waiting for work or for other threads in `fetch`
# finding: empty-pool, line requests, remedy none
# not: no-lock-contention, convoy
import http.server, threading, time, urllib3
class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.04)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True, name="server").start()
pool = urllib3.HTTPConnectionPool("127.0.0.1", server.server_port, maxsize=2, block=True)
def fetch():
    for _ in range(8):
        pool.request("GET", "/")  # requests
threads = [threading.Thread(target=fetch, name=f"client-{number}") for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
