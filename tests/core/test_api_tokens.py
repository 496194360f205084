"""A token is only accepted in its exact form."""

from __future__ import annotations

import random
import secrets

import pytest

from toolbelt.core import api_tokens

TEXT = api_tokens.make(random.Random(7).choice)  # noqa: S311 (it opens nothing)


def test_a_token_has_its_form():
    assert len(TEXT) == 60
    assert TEXT.startswith("tb_")
    assert TEXT[3:].isalnum()
    assert api_tokens.is_well_formed(TEXT)
    assert api_tokens.prefix(TEXT) == TEXT[:11]


def test_no_two_tokens_are_alike():
    made = {api_tokens.make(secrets.choice) for _ in range(100)}
    assert len({api_tokens.prefix(text) for text in made}) == 100


@pytest.mark.parametrize("place", range(len(TEXT)))
def test_a_typo_anywhere_is_told(place):
    other = "x" if TEXT[place] != "x" else "y"
    assert not api_tokens.is_well_formed(TEXT[:place] + other + TEXT[place + 1 :])


@pytest.mark.parametrize(
    "text", ["", "tb_", TEXT[:-1], TEXT + "0", TEXT + "\n", " " + TEXT, "tb_" + "é" * 57]
)
def test_what_is_no_token_is_told(text):
    assert not api_tokens.is_well_formed(text)


def test_what_is_kept_recognises_the_token_and_no_other():
    kept = api_tokens.digest(TEXT)
    assert TEXT[11:] not in kept
    assert api_tokens.matches_digest(kept, TEXT)
    assert not api_tokens.matches_digest(kept, TEXT[:-1] + "0")
