"""Tests that a URI template matches exactly the URIs that it can expand to."""

from __future__ import annotations

import pytest

from toolbelt.core import uri_templates


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("db://users/{id}", "db://users/7"),
        ("db://users/{id}/posts/{post}", "db://users/7/posts/a%20b"),
        ("file:///{+path}", "file:///a/b/c.txt"),
        ("file://{/path*}", "file:///a/b"),
        ("x://a{?q,limit}", "x://a?q=1&limit=2"),
        ("x://a{?q,limit}", "x://a?limit=2"),
        ("x://a{?q,limit}", "x://a"),
        ("x://a?b=1{&c}", "x://a?b=1&c=2"),
        ("x://a{#part}", "x://a#b/c"),
        ("x://a{.ext}", "x://a.png"),
        ("x://a.b/{id}", "x://a.b/1"),
        ("db://{a,b}", "db://1,2"),
    ],
)
def test_a_template_matches_its_expansions(template: str, uri: str) -> None:
    assert uri_templates.problem(template) is None
    assert uri_templates.matches(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("db://users/{id}", "db://users/7/secrets"),
        ("db://users/{id}", "db://users/"),
        ("db://users/{id}", "db://admins/7"),
        ("db://users/{id}", "db://users/7?all=1"),
        ("db://users/{id}", "db://users/7#x"),
        ("db://users/{id}", "db://users/7\nx"),
        ("x://a{?q}", "x://a?other=1"),
        ("x://a.b/{id}", "x://aXb/1"),
        ("x://a{.ext}", "x://a"),
        ("x://{id}", "y://1"),
        ("x://{id}", "x://" + "a" * 9_000),
    ],
)
def test_a_template_does_not_match_other_uris(template: str, uri: str) -> None:
    assert not uri_templates.matches(template, uri)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{+uri}", "does not start with a scheme"),
        ("{scheme}://x", "does not start with a scheme"),
        ("no scheme", "does not start with a scheme"),
        ("x://{", "braces"),
        ("x://{}", "RFC 6570"),
        ("x://{a b}", "RFC 6570"),
        ("x://{!a}", "RFC 6570"),
        ("x://a b/{c}", "spaces"),
        ("x://" + "{a}" * 21, "more than 20"),
    ],
)
def test_an_invalid_template_is_refused_and_matches_nothing(template: str, expected: str) -> None:
    assert expected in (uri_templates.problem(template) or "")
    assert not uri_templates.matches(template, "x://a")
