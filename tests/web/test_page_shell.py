"""Tests of navigation, error pages, and expired sessions and CSRF tokens."""

from __future__ import annotations

import types
from typing import Any, NoReturn

import pytest
from django.template import loader
from django.test import Client

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.reports import queries
from toolbelt.web.kit import page_shell

pytestmark = pytest.mark.django_db


def test_an_expired_session_redirects_htmx_to_the_login_and_back(belt: None) -> None:
    headers = {**dashboard.HTMX, "HX-Current-URL": "http://testserver/agents/ada/?q=issue&show=active"}
    response = Client().get("/agents/ada/effect/issues/", headers=headers)
    assert response.status_code == 200
    assert response.headers["HX-Redirect"] == "/login/?next=%2Fagents%2Fada%2F%3Fq%3Dissue%26show%3Dactive"


@pytest.mark.parametrize("headers", [{}, {"HX-Current-URL": "http://["}])
def test_without_a_valid_current_url_the_login_returns_to_the_overview(headers: dict[str, str]) -> None:
    response = Client().get("/agents/", headers={**dashboard.HTMX, **headers})
    assert response.headers["HX-Redirect"] == "/login/?next=%2F"


def test_other_redirects_are_unchanged(operator: Client, belt: None) -> None:
    response = operator.get("/login/", headers=dashboard.HTMX)
    assert (response.status_code, response.headers["Location"]) == (302, "/")


def test_an_expired_csrf_token_reloads_the_page_with_a_notice(olive: Any, belt: None) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(olive)
    response = dashboard.switch(browser, "issues", "false", "true")
    assert (response.status_code, response.headers["HX-Refresh"]) == (200, "true")
    assert dashboard.stored_agent().switches["issues"] is True
    notice = browser.get("/agents/ada/").context["page"].notice
    assert notice.tone == "refused"
    assert notice.text.startswith("Nothing was changed")


def test_without_htmx_an_expired_csrf_token_shows_an_explanation(olive: Any, belt: None) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(olive)
    response = dashboard.switch(browser, "issues", "false", "true", htmx=False)
    assert response.status_code == 403
    assert "This form has expired" in response.content.decode()
    assert dashboard.stored_agent().switches["issues"] is True


def test_an_anonymous_csrf_failure_starts_no_session(db: None) -> None:
    response = dashboard.post(Client(enforce_csrf_checks=True), "/agents/ada/switches/issues/")
    assert response.headers["HX-Refresh"] == "true"
    assert not response.cookies


def fail(*args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("on purpose")


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_an_error_page_shows_its_request_id(
    viewer: Client, belt: None, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    viewer.raise_request_exception = False
    match status:
        case 400:
            response = viewer.get("/agents/", headers={"host": "evil.example"})
        case 403:
            response = dashboard.switch(viewer, "issues", "false", "true", htmx=False)
        case 404:
            response = viewer.get("/nothing/")
        case _:
            monkeypatch.setattr(queries, "summaries", fail)
            response = viewer.get("/agents/")
    html = response.content.decode()
    assert response.status_code == status
    assert f'<p class="problem-code">{status}</p>' in html
    assert f"<code>{response.headers['X-Request-ID']}</code>" in html
    assert "on purpose" not in html
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize("status", [404, 500])
def test_an_error_page_renders_without_navigation_counts(
    viewer: Client, belt: None, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    viewer.raise_request_exception = False
    monkeypatch.setattr(page_shell, "queries", types.SimpleNamespace(count=fail))
    if status == 500:
        monkeypatch.setattr(queries, "summaries", fail)
    address = {403: "/calls/", 404: "/nothing/", 500: "/agents/"}[status]
    response = viewer.get(address)
    html = response.content.decode()
    assert response.status_code == status
    assert f'<p class="problem-code">{status}</p>' in html
    assert f"<code>{response.headers['X-Request-ID']}</code>" in html
    assert 'aria-label="Main"' not in html


@pytest.mark.parametrize("status", [404, 500])
def test_the_request_id_is_shown_even_if_templates_fail(
    viewer: Client, belt: None, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    viewer.raise_request_exception = False
    for name in ("get_template", "render_to_string"):
        monkeypatch.setattr(loader, name, fail)
    response = viewer.get({404: "/nothing/", 500: "/agents/"}[status])
    assert response.status_code == status
    assert f"<h1>{status}</h1>" in response.content.decode()
    assert f"<code>{response.headers['X-Request-ID']}</code>" in response.content.decode()


@pytest.mark.parametrize(
    "address", ["/api/nothing", "/api/v1/nothing", "/api/v1/agents/ada/nothing/", "/api/"]
)
def test_an_unknown_api_url_returns_a_problem_without_rendering_a_page(
    client: Client, monkeypatch: pytest.MonkeyPatch, db: None, address: str
) -> None:
    made: list[Any] = []
    for name in ("get_template", "render_to_string"):
        monkeypatch.setattr(loader, name, lambda *args, **options: made.append(args))
    response = client.get(address)
    assert made == []
    assert (response.status_code, response.headers["Content-Type"]) == (404, "application/problem+json")
    assert response.json()["code"] == "not-found"


def test_a_not_found_page_keeps_the_navigation(operator: Client, belt: None) -> None:
    html = operator.get("/agents/nobody/").content.decode()
    assert 'aria-label="Main"' in html
    assert "Log out" in html


def test_the_navigation_shows_the_user_and_the_current_page(viewer: Client, belt: None) -> None:
    html = dashboard.text(viewer.get("/audit/"))
    assert "</span> rosa</span>" in html
    assert '<a href="/audit/" aria-current="page">' in html
    assert '<a href="/agents/">' in html
    assert '<span class="count">2</span>' in html
    assert "/admin/" not in html


def test_the_admin_link_is_on_the_status_page_and_not_in_the_menu(admin_client: Client, belt: None) -> None:
    assert "/admin/" not in admin_client.get("/agents/").content.decode()
    assert (
        '<a class="button" href="/admin/">Django admin</a>' in admin_client.get("/status/").content.decode()
    )


@pytest.mark.parametrize("address", ["/agents/", "/matrix/", "/compare/"])
def test_agent_views_are_tabs_of_one_menu_entry(viewer: Client, belt: None, address: str) -> None:
    html = dashboard.text(viewer.get(address))
    menu, _, page = html.partition("<main")
    assert f'<a href="{address}" aria-current="page">' in page
    assert menu.count('href="/agents/" aria-current=') == 2  # for wide and for narrow windows
    assert 'href="/matrix/"' not in menu


def test_the_menu_lists_sub_apps_only_if_there_are_any(viewer: Client, belt: None) -> None:
    entry = '<a href="/sub-apps/">'
    models.SubApp.objects.all().delete()
    assert entry not in viewer.get("/agents/").content.decode()
    models.SubApp.objects.create(key="war-room", title="War room")
    assert entry in viewer.get("/agents/").content.decode()


@pytest.mark.parametrize("address", ["/agents/", "/login/", "/nothing/"])
def test_every_page_shows_the_escaped_environment_name(
    viewer: Client, belt: None, settings: Any, address: str
) -> None:
    settings.TOOLBELT_ENVIRONMENT_NAME, settings.TOOLBELT_ENVIRONMENT_COLOR = "<b>EU & US</b>", "amber"
    browser = Client() if address == "/login/" else viewer
    html = browser.get(address).content.decode()
    assert '<span class="environment" data-color="amber">' in html
    assert "</span> &lt;b&gt;EU &amp; US&lt;/b&gt;</span>" in html


def test_no_badge_is_shown_without_an_environment_name(viewer: Client, belt: None) -> None:
    assert 'class="environment"' not in viewer.get("/agents/").content.decode()


def test_the_login_page_has_no_navigation(client: Client) -> None:
    html = client.get("/login/").content.decode()
    assert 'aria-label="Main"' not in html
    assert 'autocomplete="current-password"' in html
