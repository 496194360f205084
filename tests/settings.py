"""Which settings do tests run with? The project's own, in the test environment."""

import os

os.environ["TOOLBELT_ENV"] = "test"

from toolbelt.settings import *  # noqa: F403
