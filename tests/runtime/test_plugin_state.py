"""Tests that each plugin has its own JSON values and cannot read another's."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync

from toolbelt.runtime import plugin_state

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_value_can_be_set_changed_and_deleted() -> None:
    async def use_state() -> None:
        state = plugin_state.State("kb")
        assert await state.get("seen", 7) == 7
        await state.set("seen", {"pages": (1, 2)})
        assert await state.get("seen") == {"pages": [1, 2]}
        await state.set("seen", None)
        assert await state.get("seen", 7) is None
        assert await state.delete("seen") is True
        assert await state.delete("seen") is False

    async_to_sync(use_state)()


def test_each_namespace_has_its_own_values_and_lists_them_by_prefix() -> None:
    async def use_state() -> None:
        state, other = plugin_state.State("kb"), plugin_state.State("mail")
        for key in ("b:1", "a:2", "a:1", "A:1", "a%"):
            await state.set(key, key)
        await other.set("a:1", "other")
        assert list(await state.list("a:")) == ["a:1", "a:2"]
        assert list(await state.list()) == ["A:1", "a%", "a:1", "a:2", "b:1"]
        assert await other.list() == {"a:1": "other"}

    async_to_sync(use_state)()


@pytest.mark.parametrize(("key", "value"), [("", 1), ("k" * 201, 1), ("k", {1, 2}), ("k", float("nan"))])
def test_an_invalid_key_or_value_is_refused(key: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        async_to_sync(plugin_state.State("kb").set)(key, value)
