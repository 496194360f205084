"""Tests of which roles the groups in a claim give."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt import conf
from toolbelt.control.people import roles, sign_in

MAPPING = {"see": "viewer", "run": "operator", "all": "administrator", "also all": "administrator"}


@pytest.mark.parametrize(
    ("claims", "given"),
    [
        ({"groups": ["see"]}, ("viewer",)),
        ({"groups": ["all", "see"]}, ("viewer", "administrator")),
        ({"groups": ["all", "also all", "all"]}, ("administrator",)),
        ({"groups": ["staff", "run"]}, ("operator",)),
        ({"groups": "run"}, ("operator",)),
        ({"groups": "see run"}, ()),
        ({"groups": ["SEE", " see", "see "]}, ()),
        ({"groups": ["viewer", "administrator"]}, ()),
        ({"groups": []}, ()),
        ({"groups": None}, ()),
        ({"groups": {"all": True}}, ()),
        ({"groups": [["all"], {"all": "all"}, None, 1, True]}, ()),
        ({"roles": ["all"]}, ()),
        ({}, ()),
    ],
)
def test_groups_give_roles_by_the_mapping_and_nothing_else_does(
    claims: dict[str, Any], given: tuple[str, ...]
) -> None:
    assert sign_in.roles_of(claims, "groups", MAPPING) == given


def test_another_claim_may_have_the_groups() -> None:
    assert sign_in.roles_of({"groups": ["all"], "roles": ["see"]}, "roles", MAPPING) == ("viewer",)


def test_without_a_mapping_no_group_gives_a_role() -> None:
    assert sign_in.roles_of({"groups": list(roles.ROLES)}, "groups", {}) == ()


@pytest.mark.parametrize("role", [*roles.ROLES, "owner", ""])
def test_the_setting_takes_the_roles_that_there_are(settings: Any, role: str) -> None:
    settings.TOOLBELT_SIGN_IN_ROLES = {"see": role}
    assert bool(conf.invalid_settings()) is (role not in roles.ROLES)
