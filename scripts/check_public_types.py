"""Checks that a type checker knows the complete type of every public name.

``unsnarl``, ``unsnarl.gil``, ``unsnarl.sync``, ``unsnarl.metrics`` and ``unsnarl.errors`` are public; the other modules
belong to the commands. Runs pyright on the installed package, prints a line for each incomplete name, and exits with 1
if there is one.
"""

import json
import subprocess
import sys
from typing import Any

PACKAGE = "unsnarl"
PUBLIC_MODULES = ("gil", "errors", "sync", "metrics")
COMMAND = ["pyright", "--verifytypes", PACKAGE, "--ignoreexternal", "--outputjson"]


def is_public(name: str) -> bool:
    """Tell whether a dotted name belongs to a public module, or to the package itself."""
    _, *rest = name.split(".")
    return len(rest) == 1 or rest[0] in PUBLIC_MODULES


def main() -> int:
    """Print the incomplete names; return the exit status."""
    verdict = subprocess.run(COMMAND, check=False, capture_output=True, text=True)
    symbols: list[dict[str, Any]] = json.loads(verdict.stdout)["typeCompleteness"]["symbols"]
    public = [symbol for symbol in symbols if symbol["isExported"] and is_public(symbol["name"])]
    for symbol in public:
        for diagnostic in symbol["diagnostics"]:
            print(f"error: {symbol['name']}: {diagnostic['message']}")
    incomplete = sum(not symbol["isTypeKnown"] for symbol in public)
    print(f"{len(public)} public names, {incomplete} of unknown or ambiguous type")
    return 1 if incomplete or not public else 0


if __name__ == "__main__":
    sys.exit(main())
