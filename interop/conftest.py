"""What do the tests of the parts in Python share? One event loop's kind, and failures that show both sides."""

import pytest

pytest.register_assert_rewrite("local_scenario", "mcp_checks", "recipe", "restarts", "scenario")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
