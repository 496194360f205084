"""Is a server listened to before it is asked what it has, so that no change falls between the two?"""

from __future__ import annotations

import asyncio

from tests.plugins.upstream import serving
from toolbelt.core import connections
from toolbelt.plugins.upstream import connection


def test_a_server_is_listened_to_before_it_is_asked() -> None:
    async def asked(address: str) -> None:
        reached = connections.of({"url": address, "headers": {"Authorization": f"Bearer {serving.TOKEN}"}})
        assert reached is not None
        server = connection.Server(reached, environ={})
        await server.tools()
        await server.close()

    serving.asked.clear()
    with serving.served() as address:
        asyncio.run(asked(address))

    assert [method for method in serving.asked if method != "server/discover"] == [
        "subscriptions/listen",
        "tools/list",
    ]
