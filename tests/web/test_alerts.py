"""Tests of the page of alerts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.receivers import receiving
from tests.web import dashboard
from toolbelt.store import preferences

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def test_without_a_file_the_page_says_how_to_begin(admin_client: Client, settings: Any) -> None:
    settings.TOOLBELT_ALERTS_FILE = ""
    assert "TOOLBELT_ALERTS_FILE" in dashboard.text(admin_client.get("/alerts/"))


def test_a_test_is_sent_and_its_delivery_shown_without_the_address(
    admin_client: Client, viewer: Client, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = True
    file = tmp_path / "alerts.yaml"
    file.write_text(
        "address: https://toolbelt.example.com\ndestinations: [{name: chat, slack: '${CHAT}', digest: daily}]\n"
    )
    settings.TOOLBELT_ALERTS_FILE = str(file)
    with receiving() as receiver:
        monkeypatch.setenv("CHAT", f"{receiver.address}/T0-secret")
        for status, notice in ((200, "chat received a test."), (404, "did not receive it: it answered 404")):
            receiver.status = status
            dashboard.post(admin_client, "/alerts/test/", destination="chat")
            text = dashboard.text(admin_client.get("/alerts/"))
            assert notice in text
            assert "T0-secret" not in text
        assert "Send a test" not in dashboard.text(viewer.get("/alerts/"))
        assert dashboard.post(viewer, "/alerts/test/", destination="chat").status_code == 403
        assert len(receiver.received) == 2


def test_a_person_chooses_on_their_account_when_mail_is_sent_to_them(
    operator: Client, settings: Any, tmp_path: Path, django_user_model: Any
) -> None:
    settings.TOOLBELT_ALERTS_FILE = ""
    assert "Alerts by mail" not in dashboard.text(operator.get("/account/"))
    file = tmp_path / "alerts.yaml"
    file.write_text("address: https://t.example\ndestinations: [{name: team, people: '${MAIL}'}]\n")
    settings.TOOLBELT_ALERTS_FILE = str(file)
    assert "Your account has no mail address" in dashboard.text(operator.get("/account/"))
    django_user_model.objects.update(email="olive@example.com")
    assert "Sent to olive@example.com" in dashboard.text(operator.get("/account/"))
    dashboard.post(operator, "/account/alerts/", alerts="daily")
    [chosen] = preferences.chosen("alerts")
    assert (chosen.email, chosen.value) == ("olive@example.com", "daily")
    assert '<option value="daily" selected>' in operator.get("/account/").content.decode()
    dashboard.post(operator, "/account/alerts/", alerts="hourly")
    assert len(preferences.chosen("alerts")) == 1
    dashboard.post(operator, "/account/alerts/", alerts="")
    assert preferences.chosen("alerts") == []
