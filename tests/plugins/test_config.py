"""Tests that a plugin's configuration is read into a dataclass, or refused with its errors."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field, StrictBool
from pydantic.dataclasses import dataclass

from toolbelt.plugins import config


@dataclass(frozen=True, kw_only=True)
class Settings:
    folder: str
    pages: Annotated[config.Whole, Field(ge=1, le=9)] = 3
    push: StrictBool = False


def test_numbers_given_as_text_are_converted_and_defaults_apply():
    assert config.read(Settings, "books", {"folder": "a", "pages": "7"}) == Settings(folder="a", pages=7)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "The config of books is not valid: folder: Field required."),
        ({"folder": "a", "pages": 10}, "pages: Input should be less than or equal to 9"),
        ({"folder": "a", "pages": True}, "pages: not a number"),
        ({"folder": "a", "push": "yes"}, "push: Input should be a valid boolean"),
        ({"folder": "a", "page": 1}, "books has no setting 'page'. Its settings are folder, pages, push."),
    ],
)
def test_invalid_settings_are_reported_by_name(given, message):
    with pytest.raises(config.ConfigError) as raised:
        config.read(Settings, "books", given)
    assert message in str(raised.value)
