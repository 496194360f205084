"""Tests of the behavior that all editors share."""

from __future__ import annotations

import re

import pytest
from django.test import Client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


@pytest.mark.parametrize(
    "address",
    [
        "/toolkits/issues/edit/",
        "/new/toolkit/",
        "/new/loadout/",
        "/new/sub-app/",
        "/new/agent/",
        "/agents/ada/settings/",
        "/plugins/add/",
        "/plugins/add/client/",
        "/plugins/add/file/",
    ],
)
def test_editor_forms_warn_about_unsaved_changes(admin_client: Client, address: str) -> None:
    html = admin_client.get(address).content.decode()
    main = html[html.index("<main") :]
    assert re.search(r'<form[^>]* method="post"[^>]* data-guarded', main)
