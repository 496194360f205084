"""Tests the question of a client that signs in: what a browser's policies let through, and where it ends."""

from __future__ import annotations

import urllib.parse

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import devices
from tests.browser.conftest import PASSWORD, OpensPage

pytestmark = pytest.mark.browser

# What a client's own page may do then, at an address that no page here knows.
LANDED = "https://other.example/landed"


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
    codes = []

    def land(route: Route) -> None:
        """Answer as the client does, whose own address redirects to another host."""
        if route.request.url.startswith("https://client.example/callback"):
            codes.append(urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query))
            route.fulfill(status=302, headers={"location": LANDED})
        else:
            route.fulfill(body="<title>Landed</title>", content_type="text/html")

    page.context.route("https://*.example/**", land)
    page.goto(question(page, "https://client.example/callback"))
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Let Desk use runner?")).to_be_visible()
    expect(page.get_by_text("client.example")).to_be_visible()
    page.get_by_role("button", name="Allow", exact=True).click()
    expect(page).to_have_title("Landed")
    assert page.url == LANDED
    [code] = codes
    assert code["state"] == ["s"]
    assert code["code"]
