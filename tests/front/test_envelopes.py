"""Does the front learn how answers look, whoever asked before?"""

from __future__ import annotations

from toolbelt.front import envelopes

HEADERS = [(b"ETag", b'"e"'), (b"Content-Length", b"2"), (b"X-Request-ID", b"r")]


def kind(port: int) -> envelopes.Kind:
    return envelopes.Kind("http", f"testserver:{port}", "GET", 200)


def test_one_who_asks_at_many_addresses_keeps_no_other_from_being_learned() -> None:
    known = envelopes.Envelopes()
    for port in range(envelopes.MOST_KEPT + 1):
        known.learn(kind(port), HEADERS)

    assert known.get(kind(envelopes.MOST_KEPT)) is not None
    assert known.get(kind(0)) is None
    assert known.get(kind(1)) is not None


def test_an_answer_that_may_be_for_one_client_alone_teaches_nothing() -> None:
    known = envelopes.Envelopes()
    known.learn(kind(1), [*HEADERS, (b"Set-Cookie", b"a=b")])
    known.learn(kind(2), [*HEADERS, (b"Vary", b"Accept")])

    assert known.get(kind(1)) is known.get(kind(2)) is None
