"""Which settings do tests run with? The project's own, in the test environment."""

import os

os.environ["TOOLBELT_ENV"] = "test"

from toolbelt.settings import *  # noqa: F403
from toolbelt.settings import DATABASES

if DATABASES["default"]["ENGINE"] == "toolbelt.store.postgresql":
    # What a test commits need not outlast the machine, and no test waits for a disk.
    DATABASES["default"]["OPTIONS"]["options"] = "-c synchronous_commit=off"
