"""Tests that outdated token counts can be recounted."""

import io

import pytest
from django.core.management import call_command

from toolbelt import models
from toolbelt.store import token_counts


@pytest.mark.django_db
def test_counts_that_a_bulk_write_left_outdated_are_corrected() -> None:
    models.Tool.objects.bulk_create([models.Tool(key="clock", description="Tell the time.")])
    out = io.StringIO()

    call_command("recount_tokens", stdout=out)

    clock = models.Tool.objects.get(key="clock")
    assert out.getvalue() == "Corrected token counts: 1.\n"
    assert clock.tokens == token_counts.of(clock) > 0
