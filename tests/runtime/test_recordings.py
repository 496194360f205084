"""Tests that the arguments of a call are recorded without secrets, and as text that every database stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolbelt.runtime import masking, recordings


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    yield
    masking.forget()


def test_keys_of_arguments_are_cleaned_as_values_are() -> None:
    masking.add("sesame-2000")

    masked = recordings.masked({"sesame-2000": "sesame-2000", "a\0": ["b\0"], "c\ud800": 1})

    assert masked == {"[withheld]": "[withheld]", "a\ufffd": ["b\ufffd"], "c?": 1}
