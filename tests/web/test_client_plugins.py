"""Tests of creating a client plugin in the dashboard, and of its page."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from tests.web import dashboard, editor_forms, servers
from toolbelt.control.servers import client_plugins
from toolbelt.store import snapshots

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

NEW, SAVE = "/plugins/add/client/", "/plugins/add/client/save/"


def create(browser: Client, **typed: Any) -> Any:
    return editor_forms.submit(browser, NEW, SAVE, **{"name": "shop", **typed})


def plugin(name: str = "shop") -> Any:
    return snapshots.catalog().plugins[name]


def test_a_client_plugin_is_created_and_its_page_says_who_runs_it(plugin_manager: Client) -> None:
    response = create(plugin_manager, title="The shop", namespace="shop", agent=["ada"])
    assert (response.status_code, response.headers["Location"]) == (303, "/plugins/shop/")
    stored = plugin()
    assert (stored.runner, stored.title, stored.namespace, stored.declared_by) == (
        "client",
        "The shop",
        "shop",
        ("ada",),
    )
    html = editor_forms.visible_text(plugin_manager.get("/plugins/shop/"))
    assert "shop created. Declare its tools, then review them here." in html
    assert "runs in the agent's program" in html.replace("&#x27;", "'")
    assert "No tools declared yet." in html


@pytest.mark.parametrize(
    ("typed", "field", "message"),
    [
        ({"name": ""}, "name", "This field is required."),
        ({"name": "no name"}, "name", "is not a name"),
        ({"name": "github"}, "name", "already exists"),
        ({"name": "add"}, "name", "reserved"),
        ({"namespace": "a__b"}, "namespace", "__"),
        ({"namespace": "github"}, "namespace", "github"),
        ({"agent": ["no name"]}, "agent", "is not a name"),
    ],
)
def test_errors_are_shown_at_their_field_and_input_is_kept(
    plugin_manager: Client, typed: dict[str, Any], field: str, message: str
) -> None:
    response = create(plugin_manager, **{"title": "The shop", **typed})
    form = response.context["page"].form
    assert response.status_code == 422
    assert message in " ".join(form.errors[field])
    assert message in response.content.decode()
    assert form["title"].value() == "The shop"
    assert "shop" not in snapshots.catalog().plugins


def test_the_developer_instructions_contain_a_valid_declaration(plugin_manager: Client) -> None:
    create(plugin_manager, namespace="shop", agent=["ada", "bob"])
    html = plugin_manager.get("/plugins/shop/").content.decode()
    assert "with a token of ada or bob:" in html
    file, curl, command = re.findall(r'<pre id="declare-[^>]*><code>(.*?)</code>', html, re.DOTALL)
    assert command.endswith("manage.py declare shop tools.json")
    assert curl.endswith("http://testserver/api/v1/client-plugins/shop/tools")
    assert '-d "{\\"tools\\": $(cat tools.json)}"' in curl
    done = client_plugins.declare(servers.SHELL, "shop", json.loads(file), agent="ada")
    assert done.unseen == ("shop__refund",)


def test_declared_tools_are_shown_with_their_review_state(plugin_manager: Client) -> None:
    create(plugin_manager, namespace="shop")
    tools = [{"name": "refund", "description": "Refund an order."}]
    client_plugins.declare(servers.SHELL, "shop", tools)
    ((tool, closed, reason, users),) = plugin_manager.get("/plugins/shop/").context["page"].tools
    assert (tool.key.rpartition("__")[2], closed.state, users) == ("refund", "unavailable", ())
    assert reason == "new, and not reviewed yet"
    review = plugin_manager.get("/review/?plugin=shop").context["page"].review
    assert [change.key for change in review.changes] == ["shop__refund"]


def test_changing_who_may_declare_tools_can_be_undone(plugin_manager: Client) -> None:
    create(plugin_manager, agent=["ada"])
    html = editor_forms.submit(plugin_manager, "/plugins/shop/", "/plugins/shop/declarers/", agent=["bob"])
    assert html.status_code == 303
    assert plugin().declared_by == ("bob",)
    notice = plugin_manager.get("/plugins/shop/").context["page"].notice
    assert notice.text == "Who may declare the tools of shop: operators, and bob."
    dashboard.post(plugin_manager, f"/audit/{notice.undo}/undo/", htmx=False)
    assert plugin().declared_by == ("ada",)


def test_a_stale_form_does_not_overwrite_who_may_declare_tools(plugin_manager: Client) -> None:
    create(plugin_manager, agent=["ada"])
    response = dashboard.post(
        plugin_manager, "/plugins/shop/declarers/", htmx=False, agent=["bob"], was=["bob"]
    )
    assert response.status_code == 303
    assert plugin().declared_by == ("ada",)
    assert plugin_manager.get("/plugins/shop/").context["page"].notice.tone == "refused"


def test_only_client_plugins_accept_declarers(plugin_manager: Client) -> None:
    servers.add()
    assert (
        dashboard.post(plugin_manager, "/plugins/files/declarers/", htmx=False, agent=["ada"]).status_code
        == 404
    )
    assert plugin_manager.get("/plugins/files/").context["page"].declaring is None


def test_a_viewer_sees_the_instructions_without_forms(plugin_manager: Client, viewer: Client) -> None:
    create(plugin_manager)
    html = dashboard.text(viewer.get("/plugins/shop/"))
    assert "client-plugins/shop/tools" in html
    assert "/declarers/" not in html
    assert viewer.get(NEW).status_code == 403
    assert not re.search(r'href="/plugins/add/', dashboard.text(viewer.get("/plugins/")))
