"""Tests that pages show the tokens of the policy separately from those of the tools, and in total."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt.core.rules import budgets
from toolbelt.runtime import surfaces
from toolbelt.web.kit import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def spent(agent: str = "ada") -> budgets.Spent:
    return surfaces.ask(agent).spent


def open_page(browser: Client, address: str) -> Any:
    return browser.get(address).context["page"]


def token_shares(count: Any) -> str:
    has = spent()
    assert has.policy_tokens
    return f"tools {count(has.tokens - has.policy_tokens)} + policy {count(has.policy_tokens)}"


@pytest.mark.parametrize(
    "address", ["/", "/agents/", "/agents/ada/", "/agents/ada/preview/", "/compare/?a=ada&b=bob"]
)
def test_tool_and_policy_tokens_are_shown_separately_with_their_sum(operator: Client, address: str) -> None:
    html = dashboard.text(operator.get(address))
    assert token_shares(words.approx) in html
    assert words.approx(spent().tokens) in html


def test_the_model_panel_shows_exact_token_counts(operator: Client) -> None:
    model = open_page(operator, "/agents/ada/").model
    assert model.spent == spent()
    assert model.shares.replace("\u00a0", " ") == token_shares(words.number)


def test_each_policy_section_shows_its_tokens_even_if_the_toolkit_is_off(operator: Client) -> None:
    parts = open_page(operator, "/agents/ada/").model.policy
    assert sum(int(tokens) for _, tokens in parts) == spent().policy_tokens
    dashboard.switch(operator, "issues", "false", "true")
    off = open_page(operator, "/agents/ada/").model.policy
    assert [(part.toolkit, part.state) for part, _ in off] == [("issues", "off")]
    assert [int(tokens) for _, tokens in off] == [spent().policy_tokens]


def test_a_toolkit_shows_the_tokens_of_its_policy(operator: Client) -> None:
    sections = dashboard.sections(open_page(operator, "/agents/ada/"))
    tokens = {part.toolkit: tokens for part, tokens in open_page(operator, "/agents/ada/").model.policy}
    assert sections["toolkit-issues"].token_parts.endswith(f" + policy ~{tokens['issues']}")
    assert not sections["toolkit-research"].tokens
    assert open_page(operator, "/toolkits/issues/").preview.tokens == tokens["issues"]


def test_the_pages_show_the_loadable_toolkits(operator: Client) -> None:
    assert "research" in open_page(operator, "/agents/ada/").model.loadable
    assert (
        "<loadable_toolkits>"
        in open_page(operator, "/agents/ada/preview/?view=policy&session=s").now.model.loadable
    )
    assert open_page(operator, "/agents/ada/preview/?view=policy").now.model.loadable == ""
    assert open_page(operator, "/agents/bob/").model.loadable == ""
