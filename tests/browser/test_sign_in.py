"""Tests the question of a client that signs in: what a browser's policies let through, and where it ends."""

from __future__ import annotations

import urllib.parse

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import devices
from tests.browser.conftest import PASSWORD, OpensPage

pytestmark = pytest.mark.browser

REDIRECT = "https://client.example/callback"


def question(page: Page, redirect: str) -> str:
    """Register a client, and return the address of its question."""
    origin = urllib.parse.urljoin(page.url, "/").rstrip("/")
    answer = page.request.post(
        f"{origin}/oauth/register", data={"client_name": "Desk", "redirect_uris": [redirect]}
    )
    parameters = {
        "response_type": "code",
        "client_id": answer.json()["client_id"],
        "redirect_uri": redirect,
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "state": "s",
        "resource": f"{origin}/mcp/runner",
    }
    return f"{origin}/oauth/authorize?{urllib.parse.urlencode(parameters)}"


@devices.on_phone
def test_a_person_logs_in_allows_a_client_and_returns_to_it(open_page: OpensPage) -> None:
    page = open_page("/help/", user=None)

    def land(route: Route) -> None:
        route.fulfill(body="<title>Landed</title>", content_type="text/html")

    page.context.route(f"{REDIRECT}**", land)
    page.goto(question(page, REDIRECT))
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Let Desk use runner?")).to_be_visible()
    expect(page.get_by_text("client.example")).to_be_visible()
    page.get_by_role("button", name="Allow", exact=True).click()
    expect(page).to_have_title("Landed")
    address, _, query = page.url.partition("?")
    back = urllib.parse.parse_qs(query)
    assert (address, back["state"]) == (REDIRECT, ["s"])
    assert back["code"]
