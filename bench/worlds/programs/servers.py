"""A threaded server without CPU-bound threads: ``servers.py SERVER CONNECTIONS SECONDS``.

Servers: ``stdlib`` (ThreadingHTTPServer), ``waitress``, ``cheroot``, ``gunicorn`` (one gthread worker). An operation is
a request; another process makes the load (`http_load`), over CONNECTIONS kept connections.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from counted import report

LOAD = Path(__file__).with_name("http_load.py")
BODY = b'{"answer": 42}'


def app(_environ: Any, start_response: Any) -> list[bytes]:
    """Answer as a WSGI application."""
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(BODY)))])
    return [BODY]


class Handler(BaseHTTPRequestHandler):
    """Answers every GET over a kept connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


class Server(ThreadingHTTPServer):
    """Room for all connections at the same time."""

    request_queue_size = 256
    daemon_threads = True


def load(port: int, connections: int, seconds: float) -> None:
    """Load a server and report what the load saw."""
    # The load is no part of what is measured: it must not inherit the scheduler.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("UNSNARL")}
    command = [sys.executable, str(LOAD), str(port), str(connections), str(seconds)]
    # A file, and no pipe: a worker that is forked meanwhile would keep the pipe's other end open, and the end of the
    # load would never be seen.
    with tempfile.TemporaryFile() as output:
        subprocess.run(command, env=variables, stdout=output, check=True)
        output.seek(0)
        seen: dict[str, float] = json.load(output)
    report(seen["requests"], seen["elapsed_s"], p50_us=seen["p50_us"], p99_us=seen["p99_us"])


def serve_stdlib(_connections: int) -> int:
    """Serve with the standard library; return the port."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def serve_waitress(connections: int) -> int:
    """Serve with waitress; return the port."""
    waitress: Any = importlib.import_module("waitress.server")
    server = waitress.create_server(app, host="127.0.0.1", port=0, threads=min(connections, 16), connection_limit=1000)
    threading.Thread(target=server.run, daemon=True).start()
    return int(server.effective_port)


def serve_cheroot(connections: int) -> int:
    """Serve with cheroot; return the port."""
    cheroot: Any = importlib.import_module("cheroot.wsgi")
    server = cheroot.Server(("127.0.0.1", 0), app, numthreads=min(connections, 16), request_queue_size=256)
    server.keep_alive_conn_limit = 1000
    server.prepare()
    threading.Thread(target=server.serve, daemon=True).start()
    return int(server.bind_addr[1])


def serve_gunicorn(connections: int, seconds: float) -> None:
    """Serve with gunicorn's gthread worker, under load, and report."""
    gunicorn: Any = importlib.import_module("gunicorn.app.base")

    def when_ready(arbiter: Any) -> None:
        port = arbiter.LISTENERS[0].getsockname()[1]

        def load_and_stop() -> None:
            load(port, connections, seconds)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=load_and_stop, daemon=True).start()

    def load_config(application: Any) -> None:
        settings = {
            "bind": "127.0.0.1:0",
            "worker_class": "gthread",
            "threads": min(connections, 16),
            "worker_connections": 1000,
            "keepalive": 30,
            "when_ready": when_ready,
            "loglevel": "error",
            "graceful_timeout": 1,
        }
        for name, value in settings.items():
            application.cfg.set(name, value)

    def load_application(_application: Any) -> Any:
        return app

    methods: dict[str, Any] = {"load_config": load_config, "load": load_application}
    type("Application", (gunicorn.BaseApplication,), methods)().run()


SERVERS = {"stdlib": serve_stdlib, "waitress": serve_waitress, "cheroot": serve_cheroot}


def main() -> None:
    """Serve, load, report."""
    server, connections, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if server == "gunicorn":
        serve_gunicorn(connections, seconds)
        return
    port = SERVERS[server](connections)
    status = 1
    try:
        load(port, connections, seconds)
        status = 0
    except subprocess.CalledProcessError as error:
        print(error, file=sys.stderr, flush=True)
    finally:
        os._exit(status)  # the server's threads wait for ever


if __name__ == "__main__":
    main()
