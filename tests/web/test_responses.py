"""Tests that views respond safely to invalid forms, URLs and notices, and redirect only within the site."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web import dashboard

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

_NOTICE = "toolbelt.notice"


def _store_notice(browser: Client, notice: object) -> None:
    session = browser.session
    session[_NOTICE] = notice
    session.save()


@pytest.mark.parametrize(
    "notice",
    [
        {"notice": {"text": "Done.", "renamed_since": 1}, "effect": None},
        {"notice": {"text": "Done."}, "effect": {"tools": 3}},
        {"text": "Done."},
    ],
)
def test_a_notice_stored_by_another_version_breaks_no_page(operator: Client, notice: object) -> None:
    _store_notice(operator, notice)
    assert operator.get("/agents/ada/").status_code == 200
    assert _NOTICE not in operator.session


def test_a_head_request_leaves_the_notice_for_the_page(operator: Client) -> None:
    dashboard.switch(operator, "research", "true", "unset", htmx=False)
    assert operator.head("/agents/ada/").status_code == 200
    assert "research</code> is on for ada" in dashboard.text(operator.get("/agents/ada/"))
    assert "research</code> is on for ada" not in dashboard.text(operator.get("/agents/ada/"))


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "javascript:alert(1)",
        "http:evil.example",
        " //evil.example",
        "\t//evil.example",
        "///evil.example",
        "http://testserver@evil.example/",
    ],
)
def test_a_change_never_redirects_to_another_site(admin_client: Client, address: str, htmx: bool) -> None:
    response = dashboard.post(
        admin_client, "/order/toolkit/", htmx=htmx, first="releases", second="issues", next=address
    )
    assert response.headers["HX-Redirect" if htmx else "Location"] == "/toolkits/"


def test_line_breaks_in_the_return_url_add_no_header(admin_client: Client) -> None:
    fields = {"first": "releases", "second": "issues", "next": "/toolkits/?q=\r\nSet-Cookie: stolen=1"}
    response = dashboard.post(admin_client, "/order/toolkit/", htmx=False, **fields)
    assert response.status_code == 303
    assert "stolen" not in response.cookies
    assert "\n" not in response.headers["Location"]


@pytest.mark.parametrize("htmx", [True, False])
def test_an_invalid_form_is_refused_with_an_error(operator: Client, htmx: bool) -> None:
    response = dashboard.switch(operator, "research", "perhaps", "unset", htmx=htmx)
    assert response.status_code == (422 if htmx else 303)
    page = response if htmx else operator.get("/agents/ada/")
    assert "Not changed" in dashboard.text(page)


@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_only_post_flips_a_switch(operator: Client, method: str) -> None:
    before = dashboard.stored_agent()
    assert getattr(operator, method)("/agents/ada/switches/research/").status_code == 405
    assert dashboard.stored_agent() == before


def test_posting_to_a_page_is_refused(operator: Client) -> None:
    assert operator.post("/agents/ada/").status_code == 405


@pytest.mark.parametrize(
    "address",
    [
        "/agents/ada/effect/issues/?on=perhaps",
        "/agents/ada/effect/nothing/?on=true",
        "/agents/nobody/effect/issues/?on=true",
        "/agents/ada/bulk/?set=nonsense",
        "/bulk/tools/?set=nonsense",
        "/bulk/agents/?set=toolkits-true",
        "/bulk/toolkits/issues/?set=nonsense&for=nobody",
        "/bulk/toolkits/nothing/?set=toolkits-true",
        "/agents/ada/preview/?view=nonsense&format=nonsense&at=nonsense&session=%00",
        "/compare/?a=ada@nonsense&b=loadout:nothing",
        "/audit/download/?form=nonsense&batch=nonsense",
        "/calls/?since=nonsense&newer=nonsense&offset=-1",
        "/loadouts/house/?offset=99999999999999",
        "/new/loadout/?from=nothing",
        "/plugins/github/?tool=nothing",
    ],
)
@pytest.mark.parametrize("htmx", [True, False])
def test_an_invalid_url_causes_no_server_error(admin_client: Client, address: str, htmx: bool) -> None:
    admin_client.raise_request_exception = False
    response = admin_client.get(address, headers=dashboard.HTMX if htmx else {})
    assert response.status_code < 500
