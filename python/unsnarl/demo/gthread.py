"""The measured process under gunicorn: its configuration file, and the Flask application.

Run as ``python -m gunicorn --config python:unsnarl.demo.gthread
'unsnarl.demo.gthread:create_app()'``, with the setup and the lines to the parent
as in ``unsnarl.demo.server``. The only worker is the measured process: the variant
is applied and the CPU-bound threads are started there, after the fork.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from typing import Any

from unsnarl.demo.hogs import Hogs
from unsnarl.demo.server import (
    BACKLOG,
    answer_parent,
    apply_variant,
    read_setup,
    send_to_parent,
    tie_to_parent,
)

# gunicorn reads these names, https://docs.gunicorn.org/en/stable/settings.html
bind = "127.0.0.1:0"
worker_class = "gthread"
workers = 1
threads = 16
backlog = BACKLOG
keepalive = 30
"""Seconds: a connection must outlive the longest wait of a stock server."""
timeout = 0
"""No watchdog: a starved worker is measured, and must not be killed."""
loglevel = "error"
control_socket_disable = True


def create_app() -> Any:
    """Return a Flask application that answers every path with a small JSON document."""
    app: Any = importlib.import_module("flask").Flask("unsnarl.demo")

    def answer(path: str) -> dict[str, Any]:
        return {"path": path, "thread": threading.get_ident()}

    app.add_url_rule("/<path:path>", view_func=answer)
    return app


def on_starting(server: Any) -> None:  # noqa: ARG001 - gunicorn passes it
    """Tie gunicorn's master to the measuring process (gunicorn's hook)."""
    tie_to_parent(read_setup().parent)


def post_worker_init(worker: Any) -> None:
    """Apply the variant and start the CPU-bound threads in the worker (gunicorn's hook)."""
    tie_to_parent(worker.ppid)
    setup = read_setup()
    apply_variant(setup)
    hogs = Hogs(setup.hogs)

    def serve_parent() -> None:
        send_to_parent({"port": worker.sockets[0].getsockname()[1]})
        answer_parent(hogs)
        os.kill(worker.ppid, signal.SIGKILL)
        os._exit(0)

    threading.Thread(target=serve_parent, name="parent", daemon=True).start()
