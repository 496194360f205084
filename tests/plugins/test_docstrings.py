"""Tests that a docstring is split into the description for the model and the texts of parameters."""

from __future__ import annotations

import pytest

from toolbelt.plugins import docstrings


@pytest.mark.parametrize("docstring", [None, "", "   "])
def test_a_missing_or_blank_docstring_is_empty(docstring):
    assert docstrings.parse(docstring) == ("", {})


def test_a_docstring_without_parameters_is_only_a_description():
    assert docstrings.parse("Search.\n\n    Note: slow.\n    ") == ("Search.\n\nNote: slow.", {})


def test_an_args_section_describes_parameters():
    parsed = docstrings.parse(
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

    assert parsed.description == "Search."
    assert parsed.parameters == {"query": "What to look for: words.", "names": "Which.", "limit": "How many."}


def test_param_fields_describe_parameters():
    parsed = docstrings.parse(
        """Search.

        :param query: What to look for,
            in words.
        :param int limit: How many.
        :type query: str
        :returns: titles
        """
    )

    assert parsed.description == "Search."
    assert parsed.parameters == {"query": "What to look for, in words.", "limit": "How many."}


def test_wrapped_lines_of_a_paragraph_are_joined_and_lists_and_tables_are_kept():
    parsed = docstrings.parse(
        """Search all of it,
        and say where.

        Kinds:
        - page
        - note
            of any length

        | a | b |
        """
    )

    assert parsed.description == (
        "Search all of it, and say where.\n\nKinds:\n- page\n- note\n    of any length\n\n| a | b |"
    )
