"""Questions of upstream servers that users have not answered yet, for the processes that wait for an answer.

As with :mod:`toolbelt.models.cancellations`, a row is neither configuration nor history: it carries a message from the
process that gets it to the one that waits for it, and is deleted with it.
"""

from __future__ import annotations

from django.db import models


class OpenQuestion(models.Model):
    """A question for which one process waits, and whose answer any process may receive."""

    key = models.CharField(
        primary_key=True, max_length=64, help_text="A digest of the client and of the question's secret id."
    )
    at = models.DateTimeField(db_index=True, help_text="When the question was asked.")
    answer = models.TextField(blank=True, help_text="The client's answer, as JSON. Empty: no answer yet.")
    outcome = models.TextField(
        blank=True, help_text="The outcome of the call, as JSON, for the process that received the answer."
    )

    def __str__(self) -> str:
        return self.key
