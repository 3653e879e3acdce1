"""`python -m recombine` is `recombine`."""

from recombine.cli.main import main

main()
