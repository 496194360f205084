"""Tests that known secrets are removed from text in every encoding."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator

import pytest

from toolbelt.runtime import masking


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    masking.forget()
    yield
    masking.forget()


@pytest.mark.parametrize(
    ("secret", "text", "masked"),
    [
        ("hunter22", "it is hunter22!", "it is [withheld]!"),
        ("hunter22", "hunter22hunter22", "[withheld][withheld]"),
        ("one", "one for all", "one for all"),
        ("a/b c&d=", "?key=" + urllib.parse.quote("a/b c&d=", safe=""), "?key=[withheld]"),
        ("a/b c&d=", "?key=" + urllib.parse.quote_plus("a/b c&d="), "?key=[withheld]"),
        ('say "hi"\n', json.dumps({"a": 'say "hi"\n'}), '{"a": "[withheld]"}'),
        ("schlüssel", json.dumps("schlüssel"), '"[withheld]"'),
        ("back\\slash'", repr(["back\\slash'"]), '["[withheld]"]'),
        ("sesame-open", base64.b64encode(b"sesame-open").decode(), "[withheld]="),
        ("sesame??>>>", base64.urlsafe_b64encode(b"sesame??>>>").decode(), "[withheld]="),
        ("Bearer abcdef123", "got abcdef123", "got [withheld]"),
        ("Bearer abcdef123", "got Bearer abcdef123", "got [withheld]"),
        ("olive:hunter22", "the password hunter22", "the password [withheld]"),
        (base64.b64encode(b"olive:hunter22").decode(), "olive:hunter22 hunter22", "[withheld] [withheld]"),
        ("Basic " + base64.b64encode(b"olive:hunter22").decode(), "hunter22", "[withheld]"),
        ("postgres://olive:p%40ssword@db/x", "p@ssword p%40ssword", "[withheld] [withheld]"),
        (
            "-----BEGIN KEY-----\n" + "A1b2" * 10 + "\n-----END KEY-----",
            "line " + "A1b2" * 10,
            "line [withheld]",
        ),
        ("half\ud800 a character", "half\ud800 a character", "[withheld]"),
    ],
)
def test_a_secret_is_masked_in_each_encoding(secret: str, text: str, masked: str) -> None:
    masking.add(secret)
    assert masking.mask(text) == masked


def test_overlapping_and_nested_secrets_are_masked_completely() -> None:
    for secret in ("abcdef", "defghi", "abcdefgh"):
        masking.add(secret)
    assert masking.mask("<abcdefghi> <abcdefgh> <defghi>") == "<[withheld]> <[withheld]> <[withheld]>"


def test_text_next_to_a_lone_surrogate_is_masked() -> None:
    masking.add("hunter22")
    assert masking.mask("\udcff hunter22") == "\udcff [withheld]"


def test_a_masked_json_document_stays_valid_json() -> None:
    masking.add("123456")
    masking.add("hunter22")
    document = {"hunter22": ["x hunter22", 123456, 1234567, 12, True, None, {"a": 1.5}]}
    assert json.loads(masking.mask_json(json.dumps(document))) == {
        "[withheld]": ["x [withheld]", "[withheld]", "[withheld]", 12, True, None, {"a": 1.5}]
    }


def test_a_document_without_a_secret_is_returned_unchanged() -> None:
    masking.add("hunter22")
    document = '{"a":  1}'
    assert masking.mask_json(document) is document


def test_a_long_text_that_resembles_many_secrets_is_returned_unchanged() -> None:
    for number in range(300):
        masking.add(f"secret-number-{number:05}")
    text = "nothing of it stands here, but secret-number- does. " * 20_000
    assert masking.mask(text) is text


def test_a_secret_that_is_discarded_is_masked_no_longer_and_others_are() -> None:
    masking.add("hunter22")
    masking.add("swordfish")
    masking.discard("hunter22")
    assert masking.mask("hunter22 swordfish") == "hunter22 [withheld]"
