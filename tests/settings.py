"""The settings of the tests: the project's own, in the test environment."""

import os

os.environ["TOOLBELT_ENV"] = "test"

from toolbelt.settings import *  # noqa: F403
from toolbelt.settings import DATABASES

# What a test commits need not outlast the machine, and no test waits for a disk.
_options = DATABASES["default"]["OPTIONS"]
if DATABASES["default"]["ENGINE"] == "toolbelt.store.postgresql":
    _options["options"] = "-c synchronous_commit=off"
else:
    _options["init_command"] += " PRAGMA synchronous=OFF;"
