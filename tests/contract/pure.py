"""The scenarios, played with the primitives in pure Python in the place of the native ones.

Run as a module, as `tests.contract.scenarios` is. Loaded by `pytest -p tests.contract.pure`, it lets other tests play
with these primitives.
"""

import sys

import unsnarl
from unsnarl import pure

sys.modules["unsnarl._native"] = pure

if __name__ == "__main__":
    from tests.contract import scenarios

    assert unsnarl.sync.__dict__["Lock"] is pure.Lock
    scenarios.main()
