"""Tests that a token is accepted only in its exact form."""

from __future__ import annotations

import random
import secrets

import pytest

from toolbelt.core import api_tokens

TEXT = api_tokens.make(random.Random(7).choice)  # noqa: S311 (the token is not valid anywhere)


def test_a_generated_token_is_well_formed():
    assert len(TEXT) == 60
    assert TEXT.startswith("tb_")
    assert TEXT[3:].isalnum()
    assert api_tokens.is_well_formed(TEXT)
    assert api_tokens.prefix(TEXT) == TEXT[:11]


def test_tokens_are_unique_by_prefix():
    made = {api_tokens.make(secrets.choice) for _ in range(100)}
    assert len({api_tokens.prefix(text) for text in made}) == 100


@pytest.mark.parametrize("place", range(len(TEXT)))
def test_a_typo_at_any_position_makes_a_token_malformed(place):
    other = "x" if TEXT[place] != "x" else "y"
    assert not api_tokens.is_well_formed(TEXT[:place] + other + TEXT[place + 1 :])


@pytest.mark.parametrize(
    "text", ["", "tb_", TEXT[:-1], TEXT + "0", TEXT + "\n", " " + TEXT, "tb_" + "é" * 57]
)
def test_other_texts_are_not_well_formed_tokens(text):
    assert not api_tokens.is_well_formed(text)


def test_the_stored_digest_matches_only_its_token():
    stored_digest = api_tokens.digest(TEXT)
    assert TEXT[11:] not in stored_digest
    assert api_tokens.matches_digest(stored_digest, TEXT)
    assert not api_tokens.matches_digest(stored_digest, TEXT[:-1] + "0")
