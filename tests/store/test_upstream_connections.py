"""A connection is claimed by one process at a time."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from toolbelt.store import upstream_connections

pytestmark = pytest.mark.django_db


def wanted(id_: str) -> upstream_connections.Claim:
    return upstream_connections.Claim(
        id=id_, plugin="files", owner="session ada/s1", host="here/0", address=f"/{id_}"
    )


def test_a_claim_that_meets_one_that_is_given_up_meanwhile_is_stored() -> None:
    upstream_connections.claim(wanted("first"))
    released: list[bool] = []

    def release(execute: Any, sql: str, *rest: Any) -> Any:
        done = execute(sql, *rest)
        if sql.startswith("INSERT") and not released:
            released.append(True)
            upstream_connections.release(["first"])
        return done

    with connection.execute_wrapper(release):
        second = upstream_connections.claim(wanted("second"))

    assert released
    assert second.id == "second"
    assert upstream_connections.claim(wanted("third")).id == "second"
