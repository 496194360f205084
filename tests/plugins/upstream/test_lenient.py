"""Tests that messages are read as programs really write them, and that an unreadable answer is one."""

from __future__ import annotations

import json
from typing import Any

import mcp_types
import pytest

from toolbelt.plugins.upstream import lenient, results

RESULT = {"content": [{"type": "text", "text": "ok"}]}
ANSWER = {"jsonrpc": "2.0", "id": 3, "result": RESULT}


def read(line: bytes | str, *waiting: lenient.Id) -> list[dict[str, Any]] | None:
    """Return the messages of a line as JSON; None if it is no message."""
    data = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
    found = lenient.messages(data, waiting or (3,))
    if found is None:
        return None
    return [each.message.model_dump(by_alias=True, exclude_unset=True) for each in found]


@pytest.mark.parametrize(
    "line",
    [
        '{"id":3,"result":RESULT}',
        '\ufeff{"jsonrpc":"2.0","id":3,"result":RESULT}',
        '{"jsonrpc":"2.0","id":3.0,"result":RESULT}',
        '{"jsonrpc":"2.0","id":3,"result":RESULT,"error":null}',
        '[{"jsonrpc":"2.0","id":3,"result":RESULT}]',
        '{"jsonrpc":"2.0","id":3,"result":RESULT} done',
    ],
)
def test_an_answer_with_one_reading_is_read(line: str) -> None:
    assert read(line.replace("RESULT", json.dumps(RESULT))) == [ANSWER]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\\ud83d", b"\xed\xa0\xbd"])
def test_halves_of_characters_and_other_bytes_are_replaced(text: bytes) -> None:
    [answer] = (
        read(b'{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"a%s"}]}}' % text) or []
    )
    said = answer["result"]["content"][0]["text"]
    assert said.startswith("a\ufffd")
    said.encode()


def test_a_deeply_nested_answer_is_read() -> None:
    deep = "[" * 400 + "]" * 400
    [answer] = read(f'{{"jsonrpc":"2.0","id":3,"result":{{"content":[],"x":{deep}}}}}') or []
    assert answer["id"] == 3


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ('"quota exceeded"', -32603, "quota exceeded"),
        ('{"code":"E_QUOTA","message":"quota exceeded"}', -32603, "quota exceeded"),
        ('{"code":-32000.0,"message":"quota exceeded"}', -32000, "quota exceeded"),
        ('{"code":-32000}', -32000, ""),
        ('{"message":["a"]}', -32603, '["a"]'),
        ("7", -32603, "7"),
    ],
)
def test_an_error_of_another_form_keeps_its_words(error: str, code: int, message: str) -> None:
    [answer] = read(f'{{"jsonrpc":"2.0","id":3,"result":null,"error":{error}}}') or []
    assert answer["error"] == {"code": code, "message": message}


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"ok"}]',
        '{"jsonrpc":"2.0","id":3,"result":{"a": NaN, }}',
        "{'jsonrpc':'2.0','id':3,'result':{'content':[]}}",
        '{"jsonrpc":"2.0","result":{',
        '{"jsonrpc":"2.0","id":3,"result":' + "[" * 5_000,
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error_at_once(line: str) -> None:
    [answer] = read(line, 3) or []
    assert (answer["id"], answer["error"]["code"]) == (3, mcp_types.PARSE_ERROR)


def test_what_cannot_be_only_one_answer_is_none() -> None:
    assert read('{"jsonrpc":"2.0","id":4,"result":{', 3, 4) is None
    assert read('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}', 3, 4) is None


@pytest.mark.parametrize(
    "line",
    [
        'INFO query={"jsonrpc":"2.0","id":3,"result":{"content":[]}}',
        '{"level":"info","row":{"id":3,"result":"ok"}}',
    ],
)
def test_no_log_that_quotes_a_message_answers_a_request(line: str) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        ('INFO done {"jsonrpc":"2.0","id":3,"result":{}}', 3),
        ('{"level":"info"} {"id": "3", "error": {"message": "x"}}  ', 3),
        ('took 3 ms: {"result":{},"id":3}\r', 3),
        ('INFO done {"jsonrpc":"2.0","id":4,"result":{}}', None),
        ('INFO done {"jsonrpc":"2.0","id":3,"method":"ping"}', None),
        ('query={"jsonrpc":"2.0","id":3,"result":{}} from here', None),
        ('row={"id":3}', None),
    ],
)
def test_an_answer_at_the_end_of_a_line_is_recognised_and_not_taken(line: str, id_: int | None) -> None:
    assert read(line, 3) is None
    assert lenient.glued(line.encode(), {3: None}) == id_


@pytest.mark.parametrize(
    "line",
    [
        "Server starting...",
        "Traceback (most recent call last): boom",
        '{"level":"info","msg":"started"}',
        '{"id":1}',
        "[]",
        '"x"',
        "null",
        '{"level":"info","msg":"the result',
        "{" * 100,
    ],
)
def test_other_lines_are_no_messages(line: str) -> None:
    assert read(line) is None


@pytest.mark.parametrize("result", ['"done"', "[]", "1"])
def test_a_result_that_is_no_object_is_an_error_and_not_empty(result: str) -> None:
    [answer] = read(f'{{"jsonrpc":"2.0","id":3,"result":{result}}}') or []
    assert answer["error"]["code"] == mcp_types.PARSE_ERROR
    assert read('{"jsonrpc":"2.0","id":3,"result":null}') == [{"jsonrpc": "2.0", "id": 3, "result": {}}]


def test_requests_and_notifications_of_the_server_are_read() -> None:
    line = '{"id":"p1","method":"ping","params":null} {"method":"y"}'
    assert read(line) == [{"jsonrpc": "2.0", "id": "p1", "method": "ping"}]
    assert read('{"method":"notifications/message","params":{"data":"\\ud83d"}}') == [
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "\ufffd"}}
    ]


def test_what_waits_is_what_was_asked_and_neither_answered_nor_cancelled() -> None:
    waiting: dict[lenient.Id, None] = {}
    for number in (1, 2, 3):
        lenient.asked(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=number, method="ping"), waiting)
    cancelled = mcp_types.JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}
    )
    lenient.asked(cancelled, waiting)
    lenient.answered(mcp_types.JSONRPCResponse(jsonrpc="2.0", id="2", result={}), waiting)
    assert [*waiting] == [3]


def test_a_probe_that_was_never_answered_is_not_waited_for_after_the_handshake() -> None:
    waiting: dict[lenient.Id, None] = {}
    for id_, method in ((1, "server/discover"), (2, "initialize")):
        lenient.asked(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=id_, method=method), waiting)
    assert [*waiting] == [2]


def test_nulls_of_a_result_are_left_out_and_a_tool_may_return_nothing() -> None:
    link = {
        "type": "resource_link",
        "uri": "a:b",
        "name": "n",
        "title": None,
        "annotations": {"audience": None},
    }
    assert results.without_nulls(
        {"content": [None, link], "isError": None, "structuredContent": {"a": None}}
    ) == {
        "content": [{"type": "resource_link", "uri": "a:b", "name": "n", "annotations": {}}],
        "structuredContent": {"a": None},
    }
    assert results.without_nulls({}) == {"content": []}
    assert results.without_nulls({"contents": []}, "resources/read") == {"contents": []}


def test_a_message_with_line_breaks_is_joined() -> None:
    joined = lenient.Joined(1_000)
    lines = json.dumps(ANSWER, indent=2).encode().split(b"\n")
    assert [joined.of(line) for line in lines[:-1]] == [None] * (len(lines) - 1)
    assert read(joined.of(lines[-1]) or b"") == [ANSWER]
    assert joined.of(b"Ready.") == b"Ready."


def test_lines_that_are_never_completed_are_returned_in_the_end() -> None:
    joined = lenient.Joined(10)
    assert joined.of(b"{") is None
    assert joined.of(b"  a log line") == b"{\n  a log line"
    assert joined.of(b"next") == b"next"
