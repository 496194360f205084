#!/usr/bin/env python
"""The command line of a Toolbelt installation: `manage.py help` lists what it can do."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # says what to set: a traceback would only bury it
        sys.exit(f"manage.py: {error}")


if __name__ == "__main__":
    main()
