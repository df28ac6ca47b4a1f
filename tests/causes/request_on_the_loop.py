"""A task makes a synchronous request on the event loop."""

# first: waiting for 127.0.0.1:
# finding: loop-stall, thread MainThread, line requests, remedy none
import asyncio, http.server, threading, time, urllib.request
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.15)
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Slow)
threading.Thread(target=server.serve_forever, name="server", kwargs={"poll_interval": 0.05}, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
def fetch():
    urllib.request.urlopen(url)  # requests
async def main():
    for _ in range(3):
        await asyncio.sleep(0.02)
        fetch()
asyncio.run(main())
server.shutdown()
