"""Tests of the button that purges a tool or the texts of a toolkit from conversations."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt.control.catalog import purging

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


@pytest.mark.parametrize(("kind", "path"), [("tool", "/tools/shell/"), ("toolkit", "/toolkits/issues/")])
def test_purging_asks_first_and_then_says_when_it_was_done(
    admin_client: Client, kind: purging.Kind, path: str
) -> None:
    name = path.split("/")[2]
    assert "Purge from conversations" in dashboard.text(admin_client.get(path))
    asked = dashboard.text(admin_client.post(f"{path}purge/"))
    assert "from conversations?" in asked
    assert "No live conversations." in asked
    assert "Messages that programs keep stay as they are" in asked
    assert purging.last(kind, name) is None
    done = dashboard.text(admin_client.post(f"{path}purge/", {"confirm": "yes"}, follow=True))
    assert "is purged from conversations." in done
    assert purging.last(kind, name) is not None
    assert "purged from conversations" in dashboard.text(admin_client.get(path))
    assert f"purged {kind}" in dashboard.text(admin_client.get("/audit/"))
