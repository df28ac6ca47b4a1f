"""Whether this interpreter was built without a GIL, and how the verbs that are about the GIL say so.

Must never: ask whether the GIL is on at the moment. An import may switch it on and off in such a build.
"""

import sys

REASON = "this is a free-threaded build: it has no GIL"
"""The first words of the native part's own refusal (`crates/native/src/gil.rs`)."""


def is_free_threaded() -> bool:
    """Return whether the interpreter was built without a GIL."""
    return "t" in sys.abiflags
