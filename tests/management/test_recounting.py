"""Are token counts put right after a write that went past the counting?"""

import io

import pytest
from django.core.management import call_command

from toolbelt import models
from toolbelt.store import tokens


@pytest.mark.django_db
def test_counts_that_a_bulk_write_left_wrong_are_put_right() -> None:
    models.Tool.objects.bulk_create([models.Tool(key="clock", description="Tell the time.")])
    out = io.StringIO()

    call_command("recount_tokens", stdout=out)

    clock = models.Tool.objects.get(key="clock")
    assert out.getvalue() == "1 counts were not right, and are now.\n"
    assert clock.tokens == tokens.of(clock) > 0
