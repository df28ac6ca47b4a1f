"""Prints what was tried on a machine, and how it went, as one line of JSON that begins with ``result: ``.

    smoke='17 passed, 0 failed' probe='ok: …' python scripts/distribution/result_line.py 'wheel …'

The argument says how unsnarl came to be installed. The environment has what the scripts found: ``probe``, ``smoke``,
``suite``, ``install_s``, ``demo_s``; one that is absent or empty was not tried. Everything else is asked of the
interpreter that runs this. Invariant: only the standard library, since it runs where little else is installed.
"""

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import time

FOUND = ("probe", "smoke", "suite", "install_s", "demo_s", "note")


def system() -> str:
    """Return the name of the distribution and its release."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.system()
    return " ".join([release["NAME"].removesuffix(" GNU/Linux"), release.get("VERSION_CODENAME", "")]).strip()


def c_library() -> str:
    """Return the C library that the interpreter is linked with, and its version."""
    if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):
        loader = f"/lib/ld-musl-{platform.machine()}.so.1"
        said = subprocess.run([loader], check=False, capture_output=True, text=True).stderr
        return " ".join(["musl", *re.findall(r"^Version (\S+)", said, re.MULTILINE)])
    return " ".join(platform.libc_ver()).strip()


def interpreter() -> str:
    """Return the implementation, its version, and whether it has no GIL."""
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"{platform.python_implementation()} {platform.python_version()}{free_threaded}"


def main() -> None:
    """Print the line."""
    result = {
        "python": interpreter(),
        "machine": platform.machine() + (", emulated" if "QEMU" in cpu_model() else ""),
        "system": system(),
        "c_library": c_library(),
        "installed_from": sys.argv[1],
        "load": round(os.getloadavg()[0], 1),
        "date": time.strftime("%Y-%m-%d"),
        **{name: without_path(os.environ[name]) for name in FOUND if os.environ.get(name)},
    }
    print("result: " + json.dumps(result, ensure_ascii=False))


def without_path(text: str) -> str:
    """Return a line without the path in brackets at its end, which belongs to the machine."""
    return text.partition(" (/")[0]


def cpu_model() -> str:
    """Return what the kernel, or the emulator in its place, calls the processor; QEMU if that cannot be told."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        text = file.read()
    shows_own = ("CPU implementer" if platform.machine() == "aarch64" else "vendor_id") in text
    return text if shows_own and "model name\t: QEMU" not in text else "QEMU"


if __name__ == "__main__":
    main()
