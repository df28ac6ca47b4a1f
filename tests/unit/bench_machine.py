"""The description of a machine, as results of the measurements have it."""

from typing import Any

MACHINE: dict[str, Any] = {
    "python": {
        "version": "3.13.0",
        "implementation": "CPython",
        "compiler": "GCC",
        "pgo": False,
        "lto": True,
        "shared": True,
    },
    "scheduler": "0123456789abcdef",
    "cpu": "A processor",
    "cores": 2,
    "kernel": "6.1",
    "libc": "glibc 2.36",
    "commit": "abc1234",
    "taken": "2026-01-01T00:00:00+00:00",
}
