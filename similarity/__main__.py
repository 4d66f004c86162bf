"""`python -m similarity` is the command `similarity`."""

from similarity.cli import main

main()
