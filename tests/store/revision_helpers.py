"""Helpers for the tests of revisions: the stored revisions, and writes that bypass Django."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from toolbelt import models


class State(NamedTuple):
    """The current revision."""

    number: int
    catalog_number: int
    catalog_stamp: str
    agents: dict[str, str]


def state() -> State:
    stored = models.Revision.objects.get()
    stamps = dict(models.AgentRevision.objects.values_list("agent_id", "stamp"))
    keys = dict(models.Agent.objects.values_list("id", "key"))
    return State(
        stored.number,
        stored.catalog_number,
        stored.catalog_stamp,
        {keys[number]: stamp for number, stamp in stamps.items()},
    )


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def with_new_description(row: models.Tool) -> models.Tool:
    row.description = "Another description."
    return row
