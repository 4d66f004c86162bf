"""`python -m similarity` is the command `similarity`."""

from similarity.cli.main import main

main()
