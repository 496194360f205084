"""Tests about whose calls people may decide: by a permission, by their groups, and for single agents."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as logins

from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import roles
from toolbelt.store import operators

pytestmark = pytest.mark.django_db

WRITE = writing.by("root", via="command")


def test_about_whose_calls_many_people_may_decide_takes_three_queries(django_assert_num_queries: Any) -> None:
    models.Agent.objects.create(key="bo")
    for name in ("amy", "gone", "otto", "pia", "vera"):
        logins.User.objects.create_user(name, is_active=name != "gone")
    logins.User.objects.create_superuser("root")
    roles.assign(WRITE, "amy", "approver")
    roles.assign(WRITE, "gone", "approver")
    roles.assign(WRITE, "vera", "viewer")
    operators.put("bo", ["otto"])
    permission = logins.Permission.objects.get(codename="decide_approval")
    logins.User.objects.get(username="pia").user_permissions.add(permission)

    with django_assert_num_queries(3):
        found = operators.decidable_by(["amy", "gone", "nobody", "otto", "pia", "root", "vera"])

    nothing = frozenset[str]()
    assert found == {"amy": None, "otto": {"bo"}, "pia": None, "root": None, "vera": nothing}
    users = logins.User.objects.filter(is_active=True)
    assert found == {user.get_username(): operators.decidable(user) for user in users}
    assert operators.no_longer_deciding(["amy", "gone", "nobody", "vera"], "bo") == {"gone", "vera"}
