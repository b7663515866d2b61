"""`python -m unmask`, for machines where nothing is installed."""

from unmask.cli import main

main()
