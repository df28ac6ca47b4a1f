"""``python -m unsnarl`` is the same command as ``unsnarl``."""

import sys

from unsnarl.cli import main

if __name__ == "__main__":
    sys.exit(main())
