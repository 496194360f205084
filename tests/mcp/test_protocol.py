"""Tests that each message is read as its revision defines it, and that errors have the specification's codes."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mcp.conftest import ABOUT, NEW, OLD, OLDER, body_of
from toolbelt.mcp import protocol, revisions

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def headers(
    version: str | None = None, method: str | None = None, name: str | None = None, twice: str = ""
) -> Any:
    return protocol.Headers(version, method, name, twice)


def fault(document: Any, about: protocol.Headers | None = None) -> protocol.ProtocolError:
    """Return the error of a message that cannot be read or has no valid revision."""
    with pytest.raises(protocol.ProtocolError) as raised:
        protocol.revision(protocol.read(document), about or headers())
    return raised.value


@pytest.mark.parametrize(
    "document",
    [
        [body_of("ping")],
        "ping",
        {"method": "ping", "id": 1},
        {"jsonrpc": "1.0", "method": "ping", "id": 1},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": "x" * 2000, "method": "ping"},
        {"jsonrpc": "2.0", "id": 10**400, "method": "ping"},
    ],
)
def test_a_malformed_message_is_an_invalid_request(document):
    error = fault(document)
    assert (error.code, error.status(is_modern=False)) == (protocol.INVALID_REQUEST, 400)


def test_params_that_are_not_an_object_are_refused_with_the_request_s_id():
    error = fault({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]})
    assert (error.code, error.id) == (protocol.INVALID_PARAMS, 7)


@pytest.mark.parametrize("answer", [{"result": {}}, {"error": {"code": 1, "message": "x"}}])
def test_a_response_is_read_as_a_message_without_a_method(answer):
    given = {"jsonrpc": "2.0", "id": 1, **answer}
    assert protocol.read(given) == (None, "", given)


@given(JSON)
def test_any_json_is_read_or_refused(document):
    with contextlib.suppress(protocol.ProtocolError):
        protocol.revision(protocol.read(document), headers(NEW))


@pytest.mark.parametrize(("version", "expected"), [(None, revisions.ASSUMED), (OLD, OLD), (OLDER, OLDER)])
def test_the_header_determines_the_revision_in_the_first_era(version, expected):
    assert protocol.revision(protocol.read(body_of("ping")), headers(version)).name == expected


def test_a_second_era_request_names_its_revision_in_header_and_body():
    message = protocol.read(body_of("tools/list", version=NEW))
    assert protocol.revision(message, headers(NEW, "tools/list")).name == NEW


@pytest.mark.parametrize(
    "about",
    [
        headers(None, "tools/call", "clock"),
        headers(OLD, "tools/call", "clock"),
        headers(NEW, None, "clock"),
        headers(NEW, "tools/list", "clock"),
        headers(NEW, "tools/call", None),
        headers(NEW, "tools/call", "cloth"),
        headers(NEW, "tools/call", "=?base64?Y2xvY2s?="),
        headers(NEW, "tools/call", "=?base64?!?="),
        headers(NEW, "tools/call", "clock", twice="mcp-name"),
    ],
)
def test_headers_that_contradict_the_body_are_a_mismatch(about):
    error = fault(body_of("tools/call", {"name": "clock"}, NEW), about)
    assert (error.code, error.status(is_modern=True)) == (protocol.HEADER_MISMATCH, 400)


def test_a_name_header_may_be_base64_encoded():
    message = protocol.read(body_of("tools/call", {"name": "clock"}, NEW))
    assert protocol.revision(message, headers(NEW, "tools/call", "=?base64?Y2xvY2s=?=")).is_modern


@pytest.mark.parametrize("missing", [protocol.VERSION, protocol.CAPABILITIES])
def test_a_missing_metadata_key_is_reported(missing):
    meta = {key: value for key, value in ABOUT.items() if key != missing}
    document = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    error = fault(document, headers(NEW, "tools/list"))
    assert (error.code, error.status(is_modern=True)) == (protocol.INVALID_PARAMS, 400)
    assert missing in error.message


@pytest.mark.parametrize("version", ["2024-11-05", "2027-01-01", "x" * 500])
def test_an_unsupported_revision_is_refused_with_the_supported_ones(version):
    in_header = fault(body_of("ping"), headers(version))
    meta = {**ABOUT, protocol.VERSION: version}
    in_meta = fault(
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": meta}}, headers(version, "ping")
    )
    for error in (in_header, in_meta):
        assert (error.code, error.status(is_modern=True)) == (protocol.UNSUPPORTED_VERSION, 400)
        assert error.data["supported"] == [NEW, OLD, OLDER]
        assert len(error.message) < 300


def test_a_second_era_notification_needs_no_metadata():
    message = protocol.read({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    assert protocol.revision(message, headers(NEW)).is_modern


def test_an_error_has_its_own_http_status_only_in_the_second_era():
    unknown = protocol.ProtocolError(protocol.METHOD_NOT_FOUND, "x")
    assert [unknown.status(is_modern=is_modern) for is_modern in (True, False)] == [404, 200]
    parse = protocol.ProtocolError(protocol.PARSE_ERROR, "x")
    assert [parse.status(is_modern=is_modern) for is_modern in (True, False)] == [400, 400]


@given(st.text(max_size=64))
def test_a_cursor_decodes_to_its_name(name):
    read = protocol.read(body_of("tools/list", {"cursor": protocol.cursor_after(name)}))
    assert protocol.cursor(read) == name


@pytest.mark.parametrize("cursor", [7, "", "x", "Pg", "!!!!", "eA==", "Pg==" * 400, {"a": 1}, "PoA="])
def test_an_invalid_cursor_is_refused(cursor):
    with pytest.raises(protocol.ProtocolError) as raised:
        protocol.cursor(protocol.read(body_of("tools/list", {"cursor": cursor})))
    assert raised.value.code == protocol.INVALID_PARAMS


def test_an_event_has_one_data_line_whatever_its_text_contains():
    message = protocol.notification("notifications/x", {"text": "a\nb\r\n\x85\u2028c"})
    lines = protocol.event(message, "e1").decode().splitlines()
    assert lines[:2] == ["event: message", "id: e1"]
    assert lines[3:] == [""]
    assert json.loads(lines[2].removeprefix("data: "))["params"]["text"] == "a\nb\r\n\x85\u2028c"


@pytest.mark.parametrize(
    ("requested", "agreed"), [(OLD, OLD), (OLDER, OLDER), (NEW, OLD), ("1999", OLD), (None, OLD)]
)
def test_a_handshake_negotiates_a_supported_revision(requested, agreed):
    assert revisions.negotiate(requested) == agreed
