"""Tests that a form survives a login that expires: it is kept by the login page, and sent again when asked."""

from __future__ import annotations

import html
import random
import re
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.contrib.sessions.models import Session
from django.core import signing
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.web import dashboard
from toolbelt import models
from toolbelt.web.kit import kept_forms

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

SWITCH = "/agents/ada/switches/issues/"
FLIP: dict[str, Any] = {"on": "false", "was": "true", "next": "/agents/ada/"}


class Browser(Client):
    """A browser with the CSRF token of a page that was opened before the login expired."""

    csrf = ""


@pytest.fixture
def browser(olive: auth.User) -> Browser:
    """Return a browser in which a page was opened before the login expired."""
    olive.set_password("pass")
    olive.is_superuser = olive.is_staff = True
    olive.save()
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(olive)
    browser.get("/agents/ada/")
    browser.csrf = re.findall(
        r'csrfmiddlewaretoken" value="(\w+)"', browser.get("/tokens/").content.decode()
    )[0]
    return browser


def expire(browser: Browser) -> None:
    """End all logins, as their age does."""
    Session.objects.all().delete()


def send(browser: Browser, path: str, *, htmx: bool = False, **fields: Any) -> Any:
    headers = {**dashboard.HTMX, "HX-Current-URL": "http://testserver/agents/ada/?q=x"} if htmx else {}
    return browser.post(path, {"csrfmiddlewaretoken": browser.csrf, **fields}, headers=headers)


def hidden(response: Any) -> dict[str, str]:
    """Return the hidden fields of the login page."""
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', response.content.decode())
    return {name: html.unescape(value) for name, value in found}


def log_in(browser: Browser, login_page: Any, name: str = "olive") -> Any:
    return browser.post("/login/", {**hidden(login_page), "username": name, "password": "pass"})


def carried(response: Any) -> tuple[str, dict[str, list[str]]]:
    """Return the address and the fields of the form that the page sends again."""
    page = response.content.decode()
    [action] = re.findall(r'<form method="post" action="([^"]+)"', page)
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<textarea name="([^"]+)" hidden>\n(.*?)</textarea>', page, re.DOTALL):
        fields.setdefault(html.unescape(name), []).append(html.unescape(value))
    fields["csrfmiddlewaretoken"] = [hidden(response)["csrfmiddlewaretoken"]]
    return html.unescape(action), fields


@pytest.mark.parametrize("htmx", [False, True], ids=["page", "htmx"])
def test_what_was_entered_is_sent_again_after_the_login_and_only_then(browser: Browser, htmx: bool) -> None:
    expire(browser)
    login_page = send(browser, SWITCH, htmx=htmx, **FLIP)
    assert login_page.status_code == (200 if htmx else 403)
    assert login_page.headers.get("HX-Retarget") == ("#main" if htmx else None)
    assert "Your login has expired. What you entered is kept" in dashboard.text(login_page)
    assert "no-store" in login_page.headers["Cache-Control"]
    asked = log_in(browser, login_page)
    assert dashboard.stored_agent().switches["issues"] is True
    assert "You are logged in as olive." in dashboard.text(asked)
    action, fields = carried(asked)
    assert (action, fields["on"], fields["next"]) == (SWITCH, ["false"], ["/agents/ada/"])
    done = browser.post(action, fields)
    assert (done.status_code, done.headers["Location"]) == (303, "/agents/ada/")
    assert dashboard.stored_agent().switches["issues"] is False
    assert dashboard.latest_entry().actor == "olive"


def test_every_value_and_line_of_an_editor_is_kept(browser: Browser) -> None:
    expire(browser)
    policy = "\nFirst line.\n\n</textarea><script>alert(1)</script> & “quotes”\n"
    login_page = send(browser, "/new/toolkit/save/", key="mail", policy=policy, add_tools=["shell", "papers"])
    asked = log_in(browser, login_page)
    action, fields = carried(asked)
    assert action == "/new/toolkit/save/"
    assert fields["policy"] == [policy]
    assert fields["add_tools"] == ["shell", "papers"]
    assert "<script>alert(1)" not in asked.content.decode()
    assert "</textarea>&lt;script" not in asked.content.decode()
    assert "shell, papers" in dashboard.text(asked)


def test_the_preview_of_an_editor_replaces_no_page_with_the_login(browser: Browser) -> None:
    expire(browser)
    preview = send(browser, "/new/toolkit/save/", htmx=True, key="mail", act="try")
    assert (preview.status_code, preview.content) == (204, b"")


def test_a_failed_login_keeps_the_form(browser: Browser) -> None:
    expire(browser)
    login_page = send(browser, SWITCH, **FLIP)
    kept = hidden(login_page)
    failed = browser.post("/login/", {**kept, "username": "olive", "password": "wrong"})
    assert hidden(failed)["kept"] == kept["kept"]
    assert carried(log_in(browser, failed))[0] == SWITCH


def test_another_person_sends_nothing_and_sees_nothing_of_it(browser: Browser) -> None:
    auth.User.objects.create_superuser("sam", password="pass")
    expire(browser)
    login_page = send(browser, SWITCH, **FLIP, reason="Confidential.")
    response = log_in(browser, login_page, "sam")
    assert response.status_code == 302
    page = dashboard.text(browser.get("/"))
    assert "was not sent, because another person had entered it" in page
    assert "Confidential." not in page
    assert dashboard.stored_agent().switches["issues"] is True


def test_passwords_and_files_are_not_kept_and_named(browser: Browser) -> None:
    expire(browser)
    login_page = send(browser, "/people/new/", name="kim", password="hunter2-secret", role="viewer")
    text = hidden(login_page)["kept"]
    kept = kept_forms.read(text)
    assert kept is not None
    assert (kept.left_out, dict(kept.fields)["name"]) == (("password",), ("kim",))
    assert "hunter2" not in login_page.content.decode() + str(kept)
    file = SimpleUploadedFile("belt.yaml", b"tools: {}")
    upload = send(browser, "/belt/check/", file=file, prune="on")
    asked = log_in(browser, upload)
    assert "Secrets and files were not kept (file): enter them again afterwards." in dashboard.text(asked)
    assert carried(asked)[1]["prune"] == ["on"]


@pytest.mark.parametrize("header", ["X-Api-Key: hunter2-hunter2", "Authorization: Bearer abc123def456"])
def test_a_field_with_a_secret_in_one_of_its_lines_is_not_kept(browser: Browser, header: str) -> None:
    expire(browser)
    login_page = send(
        browser, "/plugins/add/", url="https://x.example/mcp", headers=f"X-Region: eu\n{header}"
    )
    kept = kept_forms.read(hidden(login_page)["kept"])
    assert kept is not None
    assert (kept.left_out, dict(kept.fields)["url"]) == (("headers",), ("https://x.example/mcp",))


def test_what_is_too_long_is_not_kept_and_the_page_says_so(browser: Browser) -> None:
    expire(browser)
    # Hardly compressible, and without the form of a secret.
    long = " ".join(map(str, random.Random(7).choices(range(10_000), k=kept_forms.MAX_LENGTH)))  # noqa: S311
    login_page = send(browser, "/new/toolkit/save/", key="mail", policy=long)
    assert "too long to keep: go back with your browser" in dashboard.text(login_page)
    assert "kept" not in hidden(login_page)
    assert log_in(browser, login_page).status_code == 302


@pytest.mark.parametrize("path", ["/logout/", "/account/password/", "/login/"])
def test_forms_about_the_login_are_never_kept(browser: Browser, path: str) -> None:
    expire(browser)
    assert "kept" not in hidden(send(browser, path, old_password="pass", next="/x/"))


def test_a_form_that_was_not_kept_here_is_ignored(browser: Browser) -> None:
    expire(browser)
    login_page = browser.get("/login/")
    of_login = signing.dumps(["/logout/", "", [["a", ["b"]]], []], salt=kept_forms._SALT)
    for forged in ("x", "W10:1:2", of_login):
        response = browser.post(
            "/login/", {**hidden(login_page), "kept": forged, "username": "olive", "password": "pass"}
        )
        assert (response.status_code, response.headers["Location"]) == (302, "/")
        expire(browser)
        login_page = browser.get("/login/")


def test_a_form_from_another_site_is_refused_and_not_kept(browser: Browser) -> None:
    expire(browser)
    response = browser.post(SWITCH, FLIP)
    assert response.status_code == 403
    assert "kept" not in hidden(response)


def test_a_request_without_a_form_is_redirected_to_the_login(browser: Browser) -> None:
    expire(browser)
    response = browser.get("/agents/ada/")
    assert (response.status_code, response.headers["Location"]) == (302, "/login/?next=/agents/ada/")


@pytest.mark.parametrize("htmx", [False, True], ids=["page", "htmx"])
def test_after_a_login_on_another_page_the_form_is_offered_to_the_same_person(
    browser: Browser, olive: auth.User, htmx: bool
) -> None:
    def stale(**headers: str) -> Any:
        fields = {"csrfmiddlewaretoken": "x" * 64, **FLIP}
        sent = {**headers, **(dashboard.HTMX if htmx else {})}
        return browser.post(SWITCH, fields, headers=sent)

    assert carried(stale(**{"Sec-Fetch-Site": "same-origin"}))[0] == SWITCH
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert b"<textarea" not in stale(**headers).content
    browser.force_login(auth.User.objects.create_superuser("sam", password="pass"))
    browser.get("/agents/ada/")
    assert b"<textarea" not in stale(**{"Sec-Fetch-Site": "same-origin"}).content


def test_a_form_of_the_admin_is_kept_as_well(browser: Browser) -> None:
    expire(browser)
    category = "/admin/toolbelt/category/add/"
    login_page = send(browser, category, name="crm")
    action, fields = carried(log_in(browser, login_page))
    assert action == category
    assert browser.post(action, fields).status_code == 302
    assert models.Category.objects.filter(name="crm").exists()
