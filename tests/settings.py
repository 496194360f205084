"""The settings of the tests: those of the project in the test environment."""

import os

os.environ["TOOLBELT_ENV"] = "test"

from toolbelt.settings import *  # noqa: F403
from toolbelt.settings import DATABASES

# Commits of tests need not survive a crash, so they do not wait for the disk.
_options = DATABASES["default"]["OPTIONS"]
if DATABASES["default"]["ENGINE"] == "toolbelt.store.postgresql":
    _options["options"] = "-c synchronous_commit=off"
else:
    _options["init_command"] += " PRAGMA synchronous=OFF;"
