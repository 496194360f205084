"""What holds for conversations, whatever happens to them. `make soak` tries many more histories."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.providers import machine, small_world


@pytest.mark.parametrize("form", small_world.MODELS)
def test_what_must_hold_holds_whatever_happens(form: str) -> None:
    machine.run(form, max_examples=settings().max_examples // 2)
