"""``python -m markovblanket``."""

import sys

from markovblanket.cli import main

if __name__ == "__main__":
    sys.exit(main())
