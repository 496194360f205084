"""Tests that a cache keeps values up to a limit and evicts the least recently used."""

from __future__ import annotations

from toolbelt.core import caches


def test_the_least_recently_used_value_is_evicted() -> None:
    cache: caches.LruCache[str, int] = caches.LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")

    cache.put("c", 3)

    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_a_limit_can_apply_to_the_total_size() -> None:
    cache: caches.LruCache[str, str] = caches.LruCache(5, len)
    cache.put("a", "xx")
    cache.put("b", "xxx")
    cache.put("a", "x")
    assert (list(cache), cache.size) == (["b", "a"], 4)

    cache.put("c", "xxx")
    assert (list(cache), cache.size) == (["a", "c"], 4)

    assert cache.pop("a") == "x"
    assert (len(cache), cache.size) == (1, 3)


def test_a_value_larger_than_the_limit_is_not_kept() -> None:
    cache: caches.LruCache[str, str] = caches.LruCache(5, len)
    cache.put("a", "x" * 6)
    assert (cache.get("a"), cache.size) == (None, 0)
