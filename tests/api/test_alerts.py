"""Tests of alerts over the API."""

from __future__ import annotations


def test_destinations_and_deliveries_are_listed_without_addresses(olga, settings, tmp_path):
    file = tmp_path / "alerts.yaml"
    file.write_text(
        "address: https://toolbelt.example.com\ndestinations: [{name: chat, slack: '${CHAT_UNSET}'}]\n"
    )
    settings.TOOLBELT_ALERTS_FILE = str(file)
    sent = olga.post("/alerts/test", {"destination": "chat"})
    assert (sent.status_code, sent.json()["state"]) == (200, "waiting")
    assert "CHAT_UNSET" in sent.json()["error"]
    found = olga.get("/alerts").json()
    assert [(each["name"], each["way"]) for each in found["destinations"]] == [("chat", "slack")]
    assert [each["event"] for each in found["deliveries"]] == ["test"]
    assert olga.post("/alerts/test", {"destination": "nowhere"}).status_code == 404
