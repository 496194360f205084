#!/usr/bin/env python
"""The command line of a Toolbelt installation: `manage.py help` lists what it can do."""

import os
import sys

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def unavailable(error: Exception) -> Exception | None:
    """Return the reason where the database cannot be used; None where the error is another one."""
    if not apps.ready:
        return None
    from toolbelt.runtime import availability  # needs the applications

    return availability.classify(error)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")
    if sys.argv[1:2] == ["try"]:
        # It asks nothing of an installation, so it needs none: no file of settings is read, nothing has to be set.
        os.environ["TOOLBELT_ENV"] = "test"
    try:
        try:
            execute_from_command_line(sys.argv)
        except Exception as error:
            if (reason := unavailable(error)) is None:
                raise
            sys.exit(f"CommandError: {reason}")
        finally:
            sys.stdout.flush()  # here, where it is known what to make of a reader that has left
    except ImproperlyConfigured as error:  # says what to set: a traceback would only bury it
        sys.exit(f"manage.py: {error}")
    except BrokenPipeError:
        # Whoever read has read enough, as in `manage.py mcp review files | head`. What is still in the buffer goes
        # nowhere, so that Python has nothing to complain of on its way out; the code is what a shell expects.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + 13)  # SIGPIPE


if __name__ == "__main__":
    main()
