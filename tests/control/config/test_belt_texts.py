"""Tests of writing belts as text and reading them: unchanged, and without exploiting the parser."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import yaml

from toolbelt.control.config import belt_texts
from toolbelt.core import errors, text_limits

BELT: dict[str, Any] = {
    "categories": ["yes", "0o8", "1:30", "ü"],
    "toolkits": [{"key": "a", "policy": "Two\nlines, and a tab\t.", "members": []}],
}


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("strictly", [True, False])
def test_a_written_belt_is_read_unchanged(form: belt_texts.Form, strictly: bool) -> None:
    text = belt_texts.write(BELT, form)
    assert belt_texts.read(text, strictly=strictly) == BELT
    assert text.index("categories") < text.index("toolkits")
    assert "ü" in text


def test_a_repeated_key_is_refused_with_its_position() -> None:
    with pytest.raises(errors.Invalid, match=r"'a' is repeated in one mapping \(line 2, column 1\)"):
        belt_texts.read("a: 1\na: 2\n")
    with pytest.raises(errors.Invalid, match="is repeated in one mapping"):
        belt_texts.read('{"x": {"a": 1, "a": 2}}')


def test_yaml_aliases_are_refused_when_read_strictly() -> None:
    text = "a: &shared [1, 2]\nb: *shared\n"
    assert belt_texts.read(text) == {"a": [1, 2], "b": [1, 2]}
    with pytest.raises(errors.Invalid, match="line 2, column 4"):
        belt_texts.read(text, strictly=True)


def test_deep_nesting_and_alias_bombs_are_refused() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{name}: &{name} [*{last}, *{last}]\n" for last, name in zip("abc", "bcd", strict=True)
    )
    for text in ("[" * 100_000, "{a: " * 100_000, "- " * 100_000 + "x", bomb):
        with pytest.raises(errors.Invalid):
            belt_texts.read(text, strictly=True)


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: 2026-99-99",
        "a: !!bool x",
        "a: !!int ''",
        "a: !!float x",
        "a: !!timestamp x",
        "a: !!binary ü",
        "a: !!python/object:os.system x",
        "? [a]\n: 1",
        "a\x00b",
        "\ud800",
        "1" * 5000,
        "a: 1\n---\nb: 2",
        "\t- x",
        "*a",
    ],
)
@pytest.mark.parametrize("strictly", [True, False])
def test_unreadable_text_raises_invalid(text: str, strictly: bool) -> None:
    with pytest.raises(errors.Invalid, match=r"cannot be read|is not YAML"):
        belt_texts.read(text, strictly=strictly)


@pytest.mark.parametrize("strictly", [True, False])
def test_json_with_surrogate_pairs_is_read(strictly: bool) -> None:
    text = '{"agents": [{"key": "ada", "title": "\\ud83d\\ude80"}]}'
    assert belt_texts.read(text, strictly=strictly) == {"agents": [{"key": "ada", "title": "\U0001f680"}]}


def test_json_is_read_without_the_yaml_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaml.load", None)
    monkeypatch.setattr("yaml.parse", None)
    assert belt_texts.read(belt_texts.write(BELT, "json"), strictly=True) == BELT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just a text",
        "a: 1\nb: [x, 2.5, true, null, 2031-01-01]\n'1': {c: ~}",
        "1: one\ntrue: yes",
        "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  b: 3",
        "one: &one {a: 1}\ntwo: &two {a: 2, b: 2}\nboth: {<<: [*one, *two], c: 3}",
        "list: &list [1, 2]\nagain: *list",
        "&key a: 1\nb: *key",
        'quoted: "no"\nplain: no\ntagged: !!str 12',
        "text: |\n  two\n  lines\nfolded: >\n  one\n  line",
        "- - - []\n- {}",
    ],
)
def test_yaml_is_read_like_safe_load(text: str) -> None:
    assert belt_texts.read(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *nowhere", "the alias 'nowhere' is not defined (line 1, column 4)"),
        ("? [a, b]\n: 1", "a key must be text (line 1, column 3)"),
        ("{<<: 3}", "only mappings can be merged (line 1, column 6)"),
        ("a: 1\n---\nb: 2", "another document starts here: a belt is a single document (line 2, column 1)"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: !!set {x, y}", "could not determine a constructor"),
        ("- a\n -b: 1", "This is not YAML: "),
    ],
)
def test_unsupported_yaml_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        belt_texts.read(text)
    assert message in str(refused.value)


def bomb(levels: int) -> str:
    names = [f"n{number}" for number in range(levels)]
    lines = [f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]" for last, name in itertools.pairwise(names)]
    return "\n".join(["n0: &n0 [x]", *lines])


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (bomb(9), "with its aliases written out, it has more than 5,000,000 keys and items"),
        ("a: &a [*a]", "the alias 'a' is inside the value that it names"),
        ("a: &a {b: {c: *a}}", "the alias 'a' is inside the value that it names"),
        ("[" * 900 + "]" * 900, "nested more than 80 levels deep"),
        ("a: " + "1:" * 50_000 + "1", "a number has more than 1,000 digits"),
        ("a: " + "1:" * 50_000 + "1.5", "a number has more than 1,000 digits"),
        ("a: 0x" + "f" * 2_000, "a number has more than 1,000 digits"),
    ],
)
def test_files_are_limited_too_and_the_message_names_the_limit(text: str, limit: str) -> None:
    with pytest.raises(errors.Invalid, match=limit):
        belt_texts.read(text)


def test_aliases_that_expand_to_little_are_read() -> None:
    assert belt_texts.read("a: &a [1, 2]\nb: &b {c: *a}\nd: [*a, *b]\n") == {
        "a": [1, 2],
        "b": {"c": [1, 2]},
        "d": [[1, 2], {"c": [1, 2]}],
    }


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_limits.check_size, "__defaults__", (5,))
    with pytest.raises(errors.Invalid, match="it has more than 5 characters"):
        belt_texts.read("abcdef")
