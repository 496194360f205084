"""Tests of passkeys and apps in a browser: Chromium's own virtual authenticator makes keys and signs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page, expect

from tests.browser import accessibility
from tests.browser.conftest import PASSWORD, OpensPage
from tests.web import second_factors as helpers
from toolbelt.control.people import second_factors

pytestmark = pytest.mark.browser


def authenticator(page: Page, **options: Any) -> tuple[Any, str]:
    """Give the browser a device that makes passkeys and knows its owner; return its session and its id."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    known = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": {**known, **options}})
    return session, made["authenticatorId"]


def confirm(page: Page) -> None:
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()


def log_out(page: Page) -> None:
    page.goto("/account/")
    page.locator("main").get_by_role("button", name="Log out").click()
    expect(page).to_have_title("Log in · Toolbelt")


def olives() -> second_factors.Factors:
    return second_factors.of_user(get_user_model().objects.get(username="olive").pk)


def test_a_passkey_is_added_logs_in_alone_and_after_the_password_and_confirms(open_page: OpensPage) -> None:
    page = open_page("/account/")
    page.get_by_role("link", name="Add a passkey").click()
    confirm(page)
    session, device = authenticator(page)
    page.get_by_label("Name", exact=True).fill("Blue laptop")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_role("heading", name="Blue laptop")).to_be_visible()
    [made] = session.send("WebAuthn.getCredentials", {"authenticatorId": device})["credentials"]
    assert (made["isResidentCredential"], made["rpId"]) == (True, "localhost")

    log_out(page)
    page.goto("/login/?next=/audit/")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Audit log")).to_be_visible()
    assert olives().passkeys[0].last_used is not None

    log_out(page)
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    page.goto("/account/confirm/?next=/account/app/")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Set up an authenticator app")).to_be_visible()

    page.goto("/account/")
    page.get_by_text("Rename").click()
    page.get_by_label("Name of Blue laptop").fill("Old laptop")
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_role("heading", name="Old laptop")).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("Your password alone logs you in")).to_be_visible()
    assert not olives().are_asked


def test_a_device_that_does_not_know_its_owner_does_not_log_in(open_page: OpensPage) -> None:
    page = open_page("/account/passkeys/")
    session, device = authenticator(page)
    confirm(page)
    page.get_by_role("button", name="Add passkey").click()
    page.get_by_role("link", name="Done").click()
    log_out(page)
    session.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("alert").filter(has_text="Your device gave no passkey")).to_be_visible()
    page.goto("/account/")
    expect(page).to_have_title("Log in · Toolbelt")


def test_an_answer_counts_once_and_a_passkey_of_another_person_logs_in_as_them_alone(
    open_page: OpensPage,
) -> None:
    page = open_page("/account/passkeys/")
    authenticator(page)
    confirm(page)
    page.get_by_role("button", name="Add passkey").click()
    page.get_by_role("link", name="Done").click()
    log_out(page)
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.post_data or "") if asked.method == "POST" else None)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    [answer] = [each for each in sent if "credential=" in each]
    log_out(page)
    token = page.locator("input[name=csrfmiddlewaretoken]").first.input_value()
    credential = answer.split("credential=")[1].split("&")[0]
    replayed = page.request.post(
        "/login/passkey/",
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            "Referer": page.url,
            "X-CSRFToken": token,
        },
        data=f"csrfmiddlewaretoken={token}&credential={credential}",
    )
    assert replayed.status == 403
    assert "This passkey is not known here" in replayed.text()
    page.goto("/account/")
    expect(page).to_have_title("Log in · Toolbelt")


def test_an_app_is_set_up_from_what_the_page_shows(open_page: OpensPage) -> None:
    page = open_page("/account/app/", reduced_motion="reduce")
    confirm(page)
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    # They end a virtual authenticator, so the test of passkeys has none.
    problems = accessibility.problems(page, "set up an app", "main")
    secret = page.locator("#app-secret").inner_text().replace(" ", "").strip()
    page.get_by_label("Code that the app shows now").fill(helpers.code(secret, -1))
    page.get_by_role("button", name="Set up").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    problems += accessibility.problems(page, "recovery codes", "main")
    page.goto("/account/passkeys/")
    problems += accessibility.problems(page, "add a passkey", "main")
    page.goto("/account/")
    problems += accessibility.problems(page, "account with a second factor", "#second-factor")
    log_out(page)
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    problems += accessibility.problems(page, "second factor", "main")
    page.get_by_label("Code").fill(helpers.code(secret))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert not problems
