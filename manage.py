#!/usr/bin/env python
"""The command line of a checkout: `manage.py help` lists the commands. An installed package has `toolbelt`."""

import sys

from toolbelt.command_line import manage

if __name__ == "__main__":
    manage(sys.argv)
