"""Tests of the limits of texts: what exceeds them is refused by the name of the limit, without being parsed."""

from __future__ import annotations

import tomllib

import pytest

from toolbelt.core import text_limits

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a." * 20_000 + "b = 1", "a key has more than 16 parts"),
        ('"a" . ' * 17 + "b = 1", "a key has more than 16 parts"),
        ("[" + "a." * 17 + "b]", "a key has more than 16 parts"),
        ("x = {" + "a." * 17 + "b = 1}", "a key has more than 16 parts"),
        ("x = " + "[" * 100_000, "it is nested more than 72 levels deep"),
        ("x = " + "{a = " * 100, "it is nested more than 72 levels deep"),
        ("".join(f"a{n} = 1\n" for n in range(20_001)), "it has more than 20,000 keys and items"),
        ("x = [" + "1," * 20_001 + "]", "it has more than 20,000 keys and items"),
        ("a.b.c.d.e = 1\n" * 5_000, "it has more than 20,000 keys and items"),
        ("[[a]]\n" * 20_001, "it has more than 20,000 keys and items"),
    ],
)
def test_toml_that_takes_long_to_parse_is_refused(text: str, message: str) -> None:
    with pytest.raises(text_limits.LimitError, match=message):
        text_limits.check_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        'a = "' + "x.y=[{" * 10_000 + '"',
        "a = '" + "x.y=[{" * 10_000 + "'",
        'a = """' + 'x.y=[{\\"\\n' * 10_000 + '""""',
        "a = '''" + "x.y=[{\n" * 10_000 + "''''",
        "# " + "x.y=[{" * 10_000 + "\na = 1",
        "".join(f"[servers.s{n}]\ncommand = 'x'\nargs = ['a', '1.5']\n" for n in range(1_000)),
    ],
)
def test_what_texts_and_comments_contain_does_not_count(text: str) -> None:
    text_limits.check_toml(text)
    assert tomllib.loads(text)


@pytest.mark.parametrize(
    "text", ['"""' + '\\"""' * (MILLION // 4), '"' * MILLION, "'" * MILLION, '"\\' * MILLION]
)
def test_texts_that_do_not_end_are_read_once(text: str) -> None:
    text_limits.check_toml(text)


def test_a_document_is_limited_in_depth_and_in_keys_and_items() -> None:
    deep: object = 1
    for _ in range(text_limits.MAX_DEPTH):
        deep = {"a": [1]} if deep == 1 else {"a": deep}
    text_limits.check_document({"a": [1, {"b": 2}]})
    with pytest.raises(text_limits.LimitError, match="nested more than 72 levels deep"):
        text_limits.check_document([deep])
    with pytest.raises(text_limits.LimitError, match="more than 20,000 keys and items"):
        text_limits.check_document({"a": list(range(20_000))})


def test_a_text_has_a_maximum_size() -> None:
    text_limits.check_size("abc", 3)
    with pytest.raises(text_limits.LimitError, match="it has more than 2 characters"):
        text_limits.check_size("abc", 2)
