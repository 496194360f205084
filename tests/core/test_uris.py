"""Tests that a denied URI is recognized in any spelling that a server may read as the same."""

from __future__ import annotations

import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import uris

SECRET = "doc://secret"
SPELLINGS = [
    "doc://sec%72et",
    "doc://sec%2572et",
    "doc://sec%252572et",
    "doc://se%63%72et",
    "DOC://secret",
    "doc://SECRET",
    "doc://secret/",
    "doc://secret//",
    "doc:///secret",
    "doc:secret",
    "doc:\\\\secret",
    "doc://./secret",
    "doc://secret?",
    "doc://secret?a=1",
    "doc://secret%3Fa=1",
    "doc://secret#",
    "doc://secret#a",
    "doc://secret%23a",
    "doc://secret;a=1",
    "doc://a@secret",
    "doc://a%40secret",
    "doc://secret:80",
    "doc://secret.",
    "doc://%20secret",
    "doc://secret+",
    "doc://sec%0Aret",
    "doc://sec%E2%80%8Bret",
    "doc://%EF%BD%93ecret",
    "doc://ſecret",
    "doc://sec%00ret",
]
REFUSED = [
    ("doc://sec%72et", "need no encoding"),
    ("doc://sec%7Eet", "need no encoding"),
    ("doc://sec%2572et", "twice"),
    ("doc://sec%252572et", "twice"),
    ("doc://a/../secret", "in its path"),
    ("doc://a/%2e%2e/secret", "need no encoding"),
    ("doc://a%2F..%2Fsecret", "in its path"),
    ("doc://a%5C..%5Csecret", "in its path"),
    ("doc://a/..;x=1/secret", "in its path"),
    ("doc://a/\uff0e\uff0e/secret", "in its path"),
    ("doc://a/./secret", "in its path"),
    ("doc:..", "in its path"),
    ("doc://a%", "encodes nothing"),
    ("doc://%u0072", "encodes nothing"),
    ("doc://%ff", "UTF-8"),
    ("doc://%C0%AE%C0%AE/secret", "UTF-8"),
    ("doc://secret%00.txt", "no text"),
    ("doc://a\u200b", "invisible"),
    ("doc://a b", "spaces"),
    ("doc://" + "a" * 8_000, "8000"),
]
TEXT = st.text(st.characters(exclude_categories=("Cs", "Co")), max_size=6)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_denied_resource_covers_every_spelling_of_its_uri(spelling: str):
    assert uris.covers(uris.of_resource(SECRET), uris.of_uri(spelling))


@pytest.mark.parametrize(
    "other", ["doc://secrets", "doc://secret/a", "doc://a/secret", "doc://public", "note://secret", "doc://"]
)
def test_a_denied_resource_does_not_cover_other_resources(other: str):
    assert not uris.covers(uris.of_resource(SECRET), uris.of_uri(other))


@pytest.mark.parametrize(
    ("denied", "requested"),
    [
        ("http://example.com/x", "http://EXAMPLE.com.:80/x"),
        ("http://127.0.0.1/x", "http://0x7f.1/x"),
        ("http://127.0.0.1/x", "http://2130706433/x"),
        ("http://[::1]/x", "http://[0:0:0:0:0:0:0:1]/x"),
        ("http://bücher.example/x", "http://xn--bcher-kva.example/x"),
        ("file:///etc/passwd", "file://localhost/etc/passwd"),
        ("file:///etc/passwd", "file:///etc//passwd"),
        ("file:///etc/passwd", "file://other/etc/passwd"),
        ("file:///etc/passwd", "file://127.0.0.1/etc/passwd"),
        ("file:///c:/secret.txt", "file:///c%7C/secret.txt"),
        ("file:///c:/secret.txt", "file:///c:/secret.txt."),
        ("x://a?q=1&limit=2", "x://a?limit=2&q=1"),
        ("x://a?q=1", "x://a?q=0&q=1"),
        ("x://a?path=secret", "x://a?path=./secret"),
        ("x://a#b", "x://a#b"),
        ("x://a#b", "x://a"),
        ("x://a#b", "x://a#c"),
        ("db://users/7", "db://users/007"),
        ("db://users/7", "db://users/٧"),
        ("db://my file", "db://my+file"),
        ("db://my%20file", "db://my%2520file"),
    ],
)
def test_spellings_of_ports_hosts_parameters_and_numbers_are_compared(denied: str, requested: str):
    assert uris.covers(uris.of_resource(denied), uris.of_uri(requested))


@pytest.mark.parametrize(
    ("denied", "requested"),
    [
        ("http://example.com:8080/x", "http://example.com/x"),
        ("x://a?q=1", "x://a?q=2"),
        ("x://a?flag", "x://a?other"),
        ("x://a?q=1", "x://a"),
        ("db://users/7", "db://users/70"),
    ],
)
def test_a_part_that_is_stated_must_be_the_same(denied: str, requested: str):
    assert not uris.covers(uris.of_resource(denied), uris.of_uri(requested))


@pytest.mark.parametrize(
    ("denied", "requested"),
    [
        ("db://users/{id}", "db://users/7"),
        ("db://users/{id}", "db://Users/7"),
        ("db://users/{id}", "db://users/a%2Fb"),
        ("db://users/{id}", "db://USERS/a%2Fb"),
        ("db://users/{id}", "db://users//7"),
        ("db://users/{id}", "db://users/7?all=1"),
        ("db://users/00{id}", "db://users/007"),
        ("file:///private/{+path}", "file:///Private/a/b"),
        ("x://a{/path*}", "x://A/b/c"),
        ("x://a{?q}", "x://A?q=1"),
        ("x://a{.ext}", "x://A.png"),
    ],
)
def test_a_denied_template_covers_what_it_expands_to(denied: str, requested: str):
    assert uris.covers(uris.of_template(denied), uris.of_uri(requested))


def test_a_denied_template_does_not_cover_what_it_cannot_expand_to():
    users = uris.of_template("db://users/{id}")
    assert not uris.covers(users, uris.of_uri("db://admins/7"))
    assert not uris.covers(users, uris.of_uri("db://users/7/posts"))


def test_a_template_is_wider_if_it_expands_to_more():
    wide, narrow = uris.of_template("db://{+path}"), uris.of_template("db://users/{id}")
    assert uris.is_wider(wide, narrow)
    assert not uris.is_wider(narrow, wide)
    assert not uris.is_wider(uris.of_template("db://{a}"), uris.of_template("db://{b}"))


@pytest.mark.parametrize(("uri", "reason"), REFUSED)
def test_spellings_that_no_client_needs_are_refused(uri: str, reason: str):
    assert reason in (uris.problem(uri) or "")


@pytest.mark.parametrize(
    "uri",
    ["db://users/7", "db://users/a%20b", "x://a?q=100%25", "doc://caf%C3%A9", "x://a%2Fb", "x://.hidden/a"],
)
def test_ordinary_uris_are_not_refused(uri: str):
    assert uris.problem(uri) is None


def test_a_uri_whose_decoding_does_not_end_counts_as_denied():
    nested = "doc://%" + "25" * 50 + "72"
    assert uris.covers(uris.of_resource(SECRET), uris.of_uri(nested))


@given(TEXT, st.data())
def test_encoding_any_characters_does_not_change_what_is_covered(name: str, data: st.DataObject):
    encoded = name
    for _ in range(data.draw(st.integers(0, 3))):
        chosen = data.draw(st.lists(st.booleans(), min_size=len(encoded), max_size=len(encoded)))
        pairs = zip(encoded, chosen, strict=True)
        encoded = "".join(
            "".join(f"%{byte:02X}" for byte in character.encode()) if is_chosen else character
            for character, is_chosen in pairs
        )
    assert uris.covers(uris.of_resource(f"doc://x/{name}"), uris.of_uri(f"doc://x/{encoded}"))


@given(TEXT)
def test_a_uri_covers_itself_and_its_other_case(name: str):
    resource = uris.of_resource(f"doc://x/{name}")
    assert uris.covers(resource, uris.of_uri(f"doc://x/{name}"))
    assert uris.covers(resource, uris.of_uri(f"DOC://X/{name.casefold()}"))


@given(st.text(max_size=40))
def test_any_text_can_be_compared(text: str):
    uris.problem(text)
    uris.of_uri(text)
    uris.of_template(text)


@given(st.text("secrtSECRT%27/.?#;@:+", max_size=14))
def test_no_spelling_that_decodes_to_a_denied_uri_escapes(value: str):
    decoded = value
    for _ in range(4):
        decoded = urllib.parse.unquote(decoded)
    if decoded.casefold() == "secret":
        assert uris.covers(uris.of_resource(SECRET), uris.of_uri(f"doc://{value}"))
