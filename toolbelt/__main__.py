"""``python -m toolbelt``."""

from toolbelt.command_line import main

main()
