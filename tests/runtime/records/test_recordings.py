"""Tests that the arguments of a call are recorded without secrets, and as text that every database stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from toolbelt.runtime import masking
from toolbelt.runtime.records import recordings


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    yield
    masking.forget()


def test_keys_of_arguments_are_cleaned_as_values_are() -> None:
    masking.add("sesame-2000")

    masked = recordings.masked({"sesame-2000": "sesame-2000", "a\0": ["b\0"], "c\ud800": 1})

    assert masked == {"[withheld]": "[withheld]", "a\ufffd": ["b\ufffd"], "c?": 1}


def test_names_that_differ_in_their_secrets_only_are_numbered() -> None:
    masking.add("sesame-2000")
    masking.add("sesame-3000")
    given = {"sesame-2000": 1, "[withheld] (2)": 2, "sesame-3000": 3}
    shown = {"[withheld]": 1, "[withheld] (2)": 2, "[withheld] (3)": 3}
    assert recordings.masked({"x": given}) == {"x": shown}
    assert recordings.masked({"password": given}) == {"password": dict.fromkeys(shown, "[withheld]")}


@pytest.mark.parametrize(
    "name",
    ["apiKey", "x-api-key", "pwd", "credentials", "private_key", "AWS_SECRET_ACCESS_KEY", "session_id"],
)
def test_an_argument_that_is_named_like_a_secret_is_withheld(name: str) -> None:
    assert recordings.masked({name: "opensesame", "depth": 3}) == {name: "[withheld]", "depth": 3}


def test_a_secret_is_withheld_from_any_argument_by_its_form() -> None:
    text = "curl -H 'Authorization: Bearer 0b7f6c2d9e' postgres://ada:hunter2@db/x"

    assert recordings.masked({"command": [text]}) == {
        "command": ["curl -H 'Authorization: [withheld]' postgres://ada:[withheld]@db/x"]
    }


def digest(arguments: object) -> str:
    return recordings.digest(arguments, recordings._ordered(arguments))


def test_a_digest_of_arguments_depends_on_the_secret_key(settings: Any) -> None:
    before = digest({"pin": 1234})
    settings.SECRET_KEY += "another"

    assert len(before) == 32
    assert digest({"pin": 1234}) not in (before, "")


@pytest.mark.parametrize("written", ["1.0", "1e2"])
def test_a_whole_number_has_one_digest_beside_a_text_that_looks_like_a_fraction(written: str) -> None:
    assert digest({"a": written, "b": 1.0}) == digest({"b": 1, "a": written})
    assert digest({"a": float(written)}) != digest({"a": written})


def test_large_or_strange_arguments_have_no_digest() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert digest("x" * recordings.MAX_DIGESTED_BYTES) == ""
    assert digest(["1.0", deep]) == ""
    assert digest({"a": float("nan")}) == ""
    assert digest({"a": 1, 2: "b"}) == ""
