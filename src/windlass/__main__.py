"""`python -m windlass` is `windlass`."""

from windlass.cli.main import main

main()
