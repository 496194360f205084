"""Fixtures of the interoperability tests in Python."""

import sys
from pathlib import Path

import pytest

# The fakes of model providers are those of the project's tests. Last, so that the installed Toolbelt is found first.
sys.path.append(str(Path(__file__).resolve().parent.parent))

pytest.register_assert_rewrite(
    "browsing",
    "gateways",
    "local_scenario",
    "logins",
    "mcp_checks",
    "published",
    "recipe",
    "restarts",
    "scenario",
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
