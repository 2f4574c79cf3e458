"""``python -m markovblanket`` runs the command line."""

import sys

from markovblanket.cli import main

if __name__ == "__main__":
    sys.exit(main())
