"""``python -m markovblanket``, and the command ``markovblanket``, run the command line."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C is told in one line even while it is being imported."""
    try:
        from markovblanket.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
