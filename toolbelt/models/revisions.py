"""Revisions of the configuration, moved by database triggers, so that every write moves them.

A number counts the writes; a stamp is random, created by the database with the number, and identifies the state: after
a rollback, a number may be used again for another state, but a stamp never is.
"""

from __future__ import annotations

from django.db import models


class Revision(models.Model):
    """The state of the whole configuration, and of the catalog. There is one row."""

    THE_ONE = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ONE)
    number = models.BigIntegerField(default=0, help_text="The number of writes of configuration.")
    catalog_number = models.BigIntegerField(
        default=0, help_text="The number of the last write of the catalog."
    )
    catalog_stamp = models.CharField(
        max_length=36, blank=True, help_text="A random identifier of the catalog's state."
    )
    # With a default in the database, because its triggers insert the row.
    logged = models.BigIntegerField(
        db_default=0,
        help_text="The number of the last write that Toolbelt made itself, with its audit log. 0: none yet.",
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="revision_is_one_row")]

    def __str__(self) -> str:
        return f"revision {self.number}"


class AgentRevision(models.Model):
    """The state of one agent's own configuration."""

    # Not a foreign key: the triggers maintain it, in whichever order rows are inserted and deleted.
    agent_id = models.BigIntegerField(primary_key=True)
    number = models.BigIntegerField(default=0, help_text="The number of the last write of this agent.")
    stamp = models.CharField(max_length=36, blank=True, help_text="A random identifier of the agent's state.")

    def __str__(self) -> str:
        return f"agent {self.agent_id} at revision {self.number}"
