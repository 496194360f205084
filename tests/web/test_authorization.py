"""Tests of which URLs require a login or permissions, and of the headers of every response."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.web import dashboard
from toolbelt import models
from toolbelt.mcp import discovery

pytestmark = pytest.mark.django_db

# URLs that respond without a login.
OPEN = {"web:login", "web:passkey", "web:password_link", "healthz", "readyz"}
SAMPLES = {
    "document": "concepts.md",
    "agent": "ada",
    "toolkit": "issues",
    "tool": "shell",
    "token": "tb_1",
    "plugin": "github",
    "loadout": "house",
    "sub_app": "chat",
    "gate_rule": "no_shell",
    "approval": "7F3KQ2MW",
    "draft": "6f1f0a4c-5e0e-4d53-9d0b-3f3f6f0b7a11",
    "kind": "loadout",
    "page": "tools",
    "app_label": "toolbelt",
}


def addresses() -> list[tuple[str, str]]:
    """Return the name and a sample of every URL of the installation."""
    return list(_walk(get_resolver(), "", ""))


def _walk(resolver: URLResolver, prefix: str, space: str) -> Iterator[tuple[str, str]]:
    for pattern in resolver.url_patterns:
        route = prefix + _sample(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            yield from _walk(pattern, route, inner)
        elif isinstance(pattern, URLPattern):
            yield f"{space}{pattern.name or route}", f"/{route}"


def _sample(pattern: Any) -> str:
    if str(pattern) in (discovery.OAUTH, discovery.SSE):
        return "register" if str(pattern) == discovery.OAUTH else "sse"
    route = re.sub(r"<(?:\w+:)?(\w+)>", lambda match: SAMPLES.get(match[1], "1"), str(pattern))
    return re.sub(r"\(\?P(\w+)[^)]*\)", r"\1", route).strip("^$")


ADDRESSES = addresses()
OF_SCREENS = [(name, address) for name, address in ADDRESSES if name.startswith("web:")]
CHANGES = {
    "web:switch",
    "web:override",
    "web:proof",
    "web:save_draft",
    "web:apply_draft",
    "web:observe_draft",
    "web:schedule_draft",
    "web:roll_out_draft",
    "web:stop_draft",
    "web:discard_draft",
    "web:reset",
    "web:apply_bulk",
    "web:undo",
    "web:evict",
    "web:clear_label",
    "web:test_alert",
    "web:change_settings",
    "web:create_agent",
    "web:set_operators",
    "web:archive",
    "web:change_password",
    "web:recovery_codes",
    "web:end_login",
    "web:end_other_logins",
    "web:end_logins",
    "web:make_password_link",
    "web:withdraw_password_link",
    "web:rename_passkey",
    "web:remove_factor",
    "web:reset_second_factor",
    "web:connect_token",
    "web:change_time_zone",
    "web:change_alerts",
    "web:change_density",
    "web:create_person",
    "web:person_roles",
    "web:person_active",
    "web:issue_token",
    "web:revoke_token",
    "web:revoke_connection",
    "web:block_toolkit",
    "web:block_tool",
    "web:purge_toolkit",
    "web:purge_tool",
    "web:keep_description",
    "web:label_tool",
    "web:record_fields",
    "web:save_server",
    "web:check_servers",
    "web:save_servers",
    "web:save_client_plugin",
    "web:choose_declarers",
    "web:switch_plugin",
    "web:sign_in",
    "web:sign_out",
    "web:sign_in_own",
    "web:sign_out_own",
    "web:decide_instructions",
    "web:refresh_plugin",
    "web:refresh_plugins",
    "web:decide",
    "web:decide_approvals",
    "web:edit_approval",
    "web:revoke_approval",
    "web:reconnect_plugin",
    "web:save_loadout",
    "web:remove_loadout",
    "web:create_loadout",
    "web:save_sub_app",
    "web:remove_sub_app",
    "web:create_sub_app",
    "web:save_gate_rule",
    "web:remove_gate_rule",
    "web:create_gate_rule",
    "web:save_toolkit",
    "web:remove_toolkit",
    "web:create_toolkit",
    "web:save_view",
    "web:delete_view",
    "web:swap",
    "web:copy",
    "web:check_belt",
    "web:import_belt",
}


# Changes that every user may make to their own account.
OWN = {
    "web:sign_out_own",
    "web:revoke_connection",
    "web:change_password",
    "web:recovery_codes",
    "web:end_login",
    "web:end_other_logins",
    "web:rename_passkey",
    "web:remove_factor",
    "web:change_time_zone",
    "web:change_alerts",
    "web:change_density",
    "web:save_view",
    "web:delete_view",
}
# Pages that also take the form that they show.
BOTH = {
    "web:login",
    "web:password_link",
    "web:second_factor",
    "web:passkey",
    "web:confirm_account",
    "web:add_app",
    "web:add_passkey",
}


def test_the_collected_urls_include_the_dashboard_and_the_admin() -> None:
    names = {name for name, _ in ADDRESSES}
    assert {"web:agents", "web:agent_access", "web:undo", "admin:index", "healthz"} <= names
    assert not [address for _, address in ADDRESSES if "<" in address or "(" in address]


@pytest.mark.parametrize("method", ["get", "post"])
def test_every_url_requires_a_login(client: Client, method: str) -> None:
    opened = {}
    for name, address in ADDRESSES:
        if address.startswith("/api/"):
            continue  # authorized by tokens: tests/api/test_authorization.py
        if name.startswith("oauth2_provider:") and name != "oauth2_provider:authorize":
            continue  # for clients: tests/oauth
        if address.startswith("/mcp") or name in ("no_oauth", "no_sse"):
            continue  # not found: tests/mcp/test_unavailable_page.py, tests/mcp/test_discovery.py
        if name in ("web:to_provider", "web:provider_callback"):
            continue  # not found without a provider: tests/web/test_provider_login.py
        response = getattr(client, method)(address)
        location = response.headers.get("Location", "")
        leads_to_login = location.startswith(("/login/?next=", "/admin/login/?next="))
        if response.status_code != 302 or not leads_to_login:
            opened[name] = response.status_code
    closed_by_itself = opened.pop("metrics")
    assert closed_by_itself in (401, 405)
    leads_to_a_file = opened.pop("favicon")
    assert leads_to_a_file == (302 if method == "get" else 405)
    assert opened.pop("web:second_factor", None) == (None if method == "get" else 403)
    assert opened == dict.fromkeys(OPEN, 200 if method == "get" else 405) | {
        "web:login": 200,
        "web:password_link": 404,
        "web:passkey": 200 if method == "get" else 403,
    }


@pytest.mark.parametrize(
    ("name", "address"), [url for url in OF_SCREENS if url[0] in CHANGES and url[0] not in OWN]
)
@pytest.mark.parametrize("htmx", [True, False])
def test_a_viewer_cannot_change_anything(
    viewer: Client, operator: Client, belt: None, name: str, address: str, htmx: bool
) -> None:
    of = "/agents/ada/switches/issues/"
    dashboard.post(operator, "/review/drafts/save/", draft_of=of, on="false", was="true")
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry()
    address = address.replace("/audit/1/", f"/audit/{entry.pk}/")
    address = address.replace(SAMPLES["draft"], str(models.Draft.objects.get().pk))
    response = dashboard.post(viewer, address, htmx=htmx, on="true", was="false", draft_of=of)
    assert response.status_code == 403
    assert dashboard.latest_entry() == entry
    assert dashboard.stored_agent().switches["issues"] is False


def test_each_url_accepts_only_its_method(operator: Client) -> None:
    for name, address in OF_SCREENS:
        if name not in BOTH:
            refused = operator.get if name in {*CHANGES, "web:logout"} else operator.post
            assert refused(address).status_code == 405, name


PAGES = [
    "/",
    "/help/",
    "/search/?q=issue",
    "/status/",
    "/account/",
    "/agents/",
    "/agents/ada/",
    "/agents/ada/why/issues/",
    "/agents/ada/why/shell/",
    "/agents/ada/preview/",
    "/agents/ada/preview/?view=json",
    "/agents/ada/preview/?view=why&tool=shell",
    "/agents/ada/sessions/",
    "/agents/ada/history/",
    "/agents/ada/connect/",
    "/agents/ada/settings/",
    "/matrix/",
    "/toolkits/",
    "/toolkits/issues/?message=a+bug",
    "/tools/",
    "/tools/github__merge/",
    "/calls/",
    "/calls/proposal/",
    "/audit/",
    "/compare/?a=ada&b=bob",
    "/belt/",
    "/tokens/",
    "/plugins/",
    "/plugins/github/",
    "/plugins/add/",
    "/plugins/add/client/",
    "/plugins/add/file/",
    "/loadouts/",
    "/loadouts/developer/",
    "/new/loadout/?from=developer",
    "/sub-apps/",
    "/new/sub-app/",
    "/toolkits/issues/edit/",
    "/new/toolkit/",
]


@pytest.mark.parametrize("address", PAGES)
def test_every_page_has_the_security_headers(admin_client: Client, belt: None, address: str) -> None:
    headers = admin_client.get(address).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]
    assert headers["Cache-Control"] == "private, no-store"


def test_no_page_has_inline_scripts_or_styles(admin_client: Client, belt: None) -> None:
    for address in PAGES:
        response = admin_client.get(address)
        assert response.status_code == 200, address
        html = response.content.decode()
        assert "<style" not in html
        assert " style=" not in html
        assert "<script>" not in html
        assert " onclick" not in html


@pytest.mark.parametrize(
    "next_url", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", r"\\evil"]
)
def test_forms_do_not_redirect_to_other_sites(operator: Client, belt: None, next_url: str) -> None:
    response = dashboard.switch(operator, "issues", "false", "true", htmx=False, next=next_url)
    assert (response.status_code, response.headers["Location"]) == (303, "/agents/ada/")
    undone = dashboard.post(
        operator, f"/audit/{dashboard.latest_entry().pk}/undo/", htmx=False, next=next_url
    )
    assert (undone.status_code, undone.headers["Location"]) == (303, "/audit/")


def test_login_redirects_only_within_the_site(client: Client, olive: Any) -> None:
    known = {"username": "olive", "password": "correct horse"}
    for next_url, location in (("/audit/", "/audit/"), ("https://evil.example/", "/")):
        client.logout()
        response = client.post("/login/", {**known, "next": next_url})
        assert (response.status_code, response.headers["Location"]) == (302, location)
    assert client.get("/login/").headers["Location"] == "/"


def test_a_wrong_password_shows_an_error_and_keeps_the_username(client: Client, olive: Any) -> None:
    response = client.post("/login/", {"username": "olive", "password": "wrong"})
    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert "The user name or the password is incorrect." in response.content.decode()
    assert 'value="olive"' in response.content.decode()


def test_repeated_wrong_passwords_lock_the_login(client: Client, olive: Any, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    answers = [client.post("/login/", {"username": "olive", "password": f"guess {n}"}) for n in range(3)]
    assert [response.status_code for response in answers] == [200, 200, 429]
    assert "Too many login attempts" in answers[-1].content.decode()
    right = client.post("/login/", {"username": "olive", "password": "correct horse"})
    assert right.status_code == 429


def test_logging_out_ends_the_session(operator: Client, belt: None) -> None:
    assert operator.post("/logout/").headers["Location"] == "/login/"
    assert operator.get("/agents/").status_code == 302


def test_the_root_url_serves_a_page(operator: Client) -> None:
    assert operator.get("/").status_code == 200
