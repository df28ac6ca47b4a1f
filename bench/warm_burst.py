"""1,000 invocations from 8 shells at once: plain and warm, and how many servers it took.

    python -m bench.warm_burst --bin VENV/bin [--command hg] [--calls 1000] [--plain-calls 40]

Plain runs are measured on fewer calls and scaled, since their time is linear in
the number; the output says so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

SHELLS = 8


def burst_s(words: str, calls: int, environ: dict[str, str]) -> tuple[float, int]:
    """Run ``calls`` invocations from all shells; returns seconds and the number of failures."""
    loop = (
        f"fails=0; for i in $(seq {calls // SHELLS}); do "
        f"{words} >/dev/null 2>&1 || fails=$((fails+1)); done; echo $fails"
    )
    begin = time.perf_counter()
    shells = [subprocess.Popen(["sh", "-c", loop], env=environ, stdout=subprocess.PIPE) for _ in range(SHELLS)]
    fails = sum(int(shell.communicate()[0]) for shell in shells)
    return time.perf_counter() - begin, fails


def main() -> None:
    """Measure and print one line a variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--command", default="hg")
    parser.add_argument("--arguments", default="--version -q")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--plain-calls", type=int, default=40)
    arguments = parser.parse_args()
    plain = f"{arguments.bin}/{arguments.command} {arguments.arguments}"
    client = f"{arguments.bin}/unsnarl"
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-") as scratch:
        environ = dict(os.environ) | {"UNSNARL_WARM_DIR": f"{scratch}/house"}
        environ.pop("UNSNARL", None)
        subprocess.run([client, "warm", "start", "--", f"{arguments.bin}/{arguments.command}"], env=environ, check=True)
        plain_s, plain_fails = burst_s(plain, arguments.plain_calls, environ)
        warm_s, warm_fails = burst_s(f"{client} warm run -- {plain}", arguments.calls, environ)
        status = subprocess.run([client, "warm", "status"], env=environ, check=True, capture_output=True, text=True)
        subprocess.run([client, "warm", "stop"], env=environ, check=False)
    scaled_s = plain_s * arguments.calls / arguments.plain_calls
    sys.stdout.write(
        f"plain  {scaled_s:8.2f} s for {arguments.calls} calls "
        f"(scaled from {arguments.plain_calls}), {plain_fails} failed\n"
        f"warm   {warm_s:8.2f} s for {arguments.calls} calls, {warm_fails} failed, "
        f"{status.stdout.count('server  ')} server(s), ratio {warm_s / scaled_s:.3f}\n"
    )


if __name__ == "__main__":
    main()
