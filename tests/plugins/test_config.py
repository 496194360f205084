"""A plugin's config: read into a dataclass, or refused with what is wrong."""

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


def test_values_of_variables_count_as_numbers_and_the_rest_has_defaults():
    assert config.read(Settings, "books", {"folder": "a", "pages": "7"}) == Settings(folder="a", pages=7)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "The config of books is not valid: folder: Field required."),
        ({"folder": "a", "pages": 10}, "pages: Input should be less than or equal to 9"),
        ({"folder": "a", "pages": True}, "pages: not a number"),
        ({"folder": "a", "push": "yes"}, "push: Input should be a valid boolean"),
        ({"folder": "a", "page": 1}, "books has no setting 'page'. Its settings are folder, pages, push."),
    ],
)
def test_what_is_not_valid_is_named(given, words):
    with pytest.raises(config.ConfigError) as refused:
        config.read(Settings, "books", given)
    assert words in str(refused.value)
