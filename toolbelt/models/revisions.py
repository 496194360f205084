"""Which state of the configuration is this? Moved by triggers of the database, so whoever writes moves it.

A number says how far the configuration has come; a stamp is random, made by the database with the number, and says
which state this is: a number that was rolled back may come again for another state, a stamp never does.
"""

from __future__ import annotations

from django.db import models


class Revision(models.Model):
    """The state of the whole configuration, and of the catalog in it. There is one row."""

    THE_ONE = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ONE)
    number = models.BigIntegerField(default=0, help_text="Counts every write of configuration.")
    catalog_number = models.BigIntegerField(
        default=0, help_text="The number of the last write of the catalog."
    )
    catalog_stamp = models.CharField(
        max_length=36, blank=True, help_text="Which state of the catalog this is."
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="revision_is_one_row")]

    def __str__(self) -> str:
        return f"revision {self.number}"


class AgentRevision(models.Model):
    """The state of one agent's own configuration."""

    # Not a foreign key: the triggers keep it in step, also while rows come and go in any order.
    agent_id = models.BigIntegerField(primary_key=True)
    number = models.BigIntegerField(default=0, help_text="The number of the last write of this agent.")
    stamp = models.CharField(max_length=36, blank=True, help_text="Which state of the agent this is.")

    def __str__(self) -> str:
        return f"agent {self.agent_id} at revision {self.number}"
