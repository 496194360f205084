"""Fixtures of the interoperability tests in Python."""

import pytest

pytest.register_assert_rewrite("local_scenario", "mcp_checks", "recipe", "restarts", "scenario")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
