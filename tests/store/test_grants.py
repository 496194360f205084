"""Tests that switches and overrides are set, changed and cleared."""

from __future__ import annotations

from typing import Literal

import pytest

from tests import factories
from toolbelt import models
from toolbelt.core import errors
from toolbelt.store import grants, snapshots

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("family", "key"), [("switch", "dev"), ("override", "run")])
def test_a_grant_can_be_set_changed_and_cleared(family: Literal["switch", "override"], key: str) -> None:
    factories.toolkit("dev", factories.tool("run"))
    ada = factories.agent()

    for on in (True, False, False, None, None, True):
        grants.write(family, ada.pk, key, on)
        agent = snapshots.find("ada", None).agent
        assert agent.tools_config() == ({} if on is None else {key: on})


@pytest.mark.parametrize(("family", "key"), [("switch", "run"), ("override", "dev")])
def test_an_unknown_key_is_refused(family: Literal["switch", "override"], key: str) -> None:
    factories.toolkit("dev", factories.tool("run"))
    ada = factories.agent()

    with pytest.raises(errors.NotFound):
        grants.write(family, ada.pk, key, True)
    assert not models.ToolkitSwitch.objects.exists()
