"""``python -m memprov`` is the command ``memprov``."""

from memprov.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
