"""Each plugin has its own JSON values, and cannot read another's."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync

from toolbelt.runtime import plugin_state

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_value_is_kept_changed_and_forgotten() -> None:
    async def live() -> None:
        kept = plugin_state.State("kb")
        assert await kept.get("seen", 7) == 7
        await kept.set("seen", {"pages": (1, 2)})
        assert await kept.get("seen") == {"pages": [1, 2]}
        await kept.set("seen", None)
        assert await kept.get("seen", 7) is None
        assert await kept.delete("seen") is True
        assert await kept.delete("seen") is False

    async_to_sync(live)()


def test_each_namespace_has_values_of_its_own_and_lists_them_by_beginning() -> None:
    async def live() -> None:
        kept, other = plugin_state.State("kb"), plugin_state.State("mail")
        for key in ("b:1", "a:2", "a:1", "A:1", "a%"):
            await kept.set(key, key)
        await other.set("a:1", "other")
        assert list(await kept.list("a:")) == ["a:1", "a:2"]
        assert list(await kept.list()) == ["A:1", "a%", "a:1", "a:2", "b:1"]
        assert await other.list() == {"a:1": "other"}

    async_to_sync(live)()


@pytest.mark.parametrize(("key", "value"), [("", 1), ("k" * 201, 1), ("k", {1, 2}), ("k", float("nan"))])
def test_what_cannot_be_kept_is_refused(key: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        async_to_sync(plugin_state.State("kb").set)(key, value)
