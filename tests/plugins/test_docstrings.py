"""Docstrings: what is for the model, and what of it belongs to a parameter."""

from __future__ import annotations

import pytest

from toolbelt.plugins import docstrings


@pytest.mark.parametrize("docstring", [None, "", "   "])
def test_no_docstring_tells_nothing(docstring):
    assert docstrings.parse(docstring) == ("", {})


def test_a_docstring_without_parameters_is_all_description():
    assert docstrings.parse("Search.\n\n    Note: slow.\n    ") == ("Search.\n\nNote: slow.", {})


def test_a_section_of_args_tells_of_parameters():
    told = docstrings.parse(
        """Search.

        Args:
            query: What to look for:
                words.
            *names (str, optional): Which.

            limit: How many.

        Raises:
            ValueError: never.
        """
    )

    assert told.description == "Search."
    assert told.parameters == {"query": "What to look for: words.", "names": "Which.", "limit": "How many."}


def test_fields_tell_of_parameters():
    told = docstrings.parse(
        """Search.

        :param query: What to look for,
            in words.
        :param int limit: How many.
        :type query: str
        :returns: titles
        """
    )

    assert told.description == "Search."
    assert told.parameters == {"query": "What to look for, in words.", "limit": "How many."}


def test_wrapped_lines_of_a_paragraph_are_joined_and_others_stay_lines():
    told = docstrings.parse(
        """Search all of it,
        and say where.

        Kinds:
        - page
        - note
            of any length

        | a | b |
        """
    )

    assert told.description == (
        "Search all of it, and say where.\n\nKinds:\n- page\n- note\n    of any length\n\n| a | b |"
    )
