"""`python -m recombine` is `recombine`."""

from __future__ import annotations

import os


def main() -> None:
    """The entry point. An interrupt while the command line is being loaded ends the process without a traceback."""
    try:
        from recombine.cli.main import main as command
    except KeyboardInterrupt:
        os._exit(130)
    command()


if __name__ == "__main__":
    main()
