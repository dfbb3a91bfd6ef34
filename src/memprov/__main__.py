"""The command ``memprov``, which is also ``python -m memprov``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say what is missing for it."""
    try:
        from memprov.cli import main as run  # noqa: PLC0415  # an extra: its absence has an answer
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.stderr.write("memprov: the command line needs two more packages: pip install 'memprov[cli]'\n")
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
