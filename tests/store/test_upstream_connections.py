"""Tests that a connection is claimed by one process at a time."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from toolbelt.store import upstream_connections

pytestmark = pytest.mark.django_db


def claim_with(id_: str) -> upstream_connections.Claim:
    return upstream_connections.Claim(
        id=id_, plugin="files", owner="session ada/s1", host="here/0", address=f"/{id_}"
    )


def test_a_claim_that_conflicts_with_a_concurrently_released_one_is_stored() -> None:
    upstream_connections.claim(claim_with("first"))
    released: list[bool] = []

    def release(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if sql.startswith("INSERT") and not released:
            released.append(True)
            upstream_connections.release(["first"])
        return result

    with connection.execute_wrapper(release):
        second = upstream_connections.claim(claim_with("second"))

    assert released
    assert second.id == "second"
    assert upstream_connections.claim(claim_with("third")).id == "second"
