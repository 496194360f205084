"""The counts in the navigation, read in one query, because every page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import F, Func, IntegerField, Q, QuerySet, Value

from toolbelt import models
from toolbelt.core import tool_versions
from toolbelt.store import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of agents that are not archived, of plugins' tools to review, of sub-apps and of calls that wait for
    approval, and the number of the last write of configuration.
    """

    agents: int
    to_review: int
    sub_apps: int
    waiting: int
    revision: int = 0


def count() -> Counts:
    """Return the counts."""
    # As `tool_versions.awaits_review`; `tests/store/test_counts.py` compares them.
    is_unblocked = Q(blocked=False) | Q(block_ends__lte=clock.now())
    is_open_again = Q(approved__startswith=tool_versions.REJECTED) & is_unblocked
    is_open = Q(seen=False) | Q(approved_version__isnull=False) | is_open_again
    to_review = models.Tool.objects.filter(is_open, retired=False, plugin__isnull=False)
    revision = (
        models.Revision.objects.order_by().annotate(what=Value("revision")).values_list("what", "number")
    )
    rows = _counted("agents", models.Agent.objects.filter(archived=False)).union(
        _counted("to_review", to_review),
        _counted("sub_apps", models.SubApp.objects.all()),
        _counted("waiting", models.Approval.objects.filter(state="pending", expires__gt=clock.now())),
        revision,
        all=True,
    )
    return Counts(**dict(rows))


def _counted(name: str, rows: QuerySet[Any]) -> QuerySet[Any]:
    # aggregate() would run a query of its own.
    number = Func(F("pk"), function="COUNT", output_field=IntegerField())
    counted: QuerySet[Any] = rows.order_by().annotate(what=Value(name), number=number)
    return counted.values_list("what", "number")
