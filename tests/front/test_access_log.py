"""A request that Django does not see is counted, logged and limited like any other."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import prometheus_client
import structlog
from structlog import stdlib

from tests.front.conftest import Request, Server
from toolbelt.api import limits
from toolbelt.core import api_tokens
from toolbelt.front import access_log
from toolbelt.mcp import exchanges
from toolbelt.settings import logs

LOGGER = "django_structlog.middlewares.request"
KINDS = (
    {"query": "session=s1"},
    {"method": "POST", "body": {"message": "find it"}},
    {"scheme": "https"},
)


def counted() -> dict[Any, float]:
    """Return what is counted of requests now, but for how long they took."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in prometheus_client.REGISTRY.collect()
        if family.name.startswith("django_http")
        for sample in family.samples
        if not sample.name.endswith("_created")
        and not ("seconds" in sample.name and not sample.name.endswith("_count"))
    }


def added(ask: Any) -> dict[Any, float]:
    before = counted()
    ask()
    return {
        name: value - before.get(name, 0) for name, value in counted().items() if value != before.get(name, 0)
    }


def test_a_request_is_counted_as_django_counts_it(server, ada):
    etag = server.ask(Request(token=ada)).header("etag")
    for asked in (*KINDS, {"headers": {"If-None-Match": etag}}):
        request = Request(token=ada, **asked)
        server.warm(request)
        in_front = added(lambda request=request: server.ask(request))
        assert in_front
        assert in_front == added(lambda request=request: server.ask_django(request))


def production() -> logs.JsonFormatter:
    """Return what writes lines in production."""
    before = structlog.get_config()
    configured = logs.configure(level="INFO", as_json=True)["formatters"]["entry"]
    structlog.configure(**before)
    return logs.JsonFormatter(**{name: value for name, value in configured.items() if name != "()"})


def lines(text: str) -> list[dict[str, Any]]:
    """Read lines, without what differs each time."""
    found = [json.loads(line) for line in text.splitlines()]
    return [
        {**line, "request_id": len(line["request_id"]), "timestamp": len(line["timestamp"])} for line in found
    ]


@contextlib.contextmanager
def written() -> Iterator[io.StringIO]:
    """Yield what production writes of requests, and only that."""
    logger, stream = logging.getLogger(LOGGER), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(production())
    # Within a test, and not before it: pytest adds its own handlers to loggers.
    kept, logger.handlers, logger.propagate = logger.handlers, [handler], False
    try:
        yield stream
    finally:
        logger.handlers, logger.propagate = kept, True


def test_a_request_is_logged_as_django_logs_it(server, ada):
    for asked in KINDS:
        request = Request(token=ada, **asked)
        server.warm(request)
        with written() as log:
            answers = *server.ask_all(request, request), server.ask_django(request)
        assert [answer.by_django for answer in answers] == [False, False, True]
        first, second, by_django = lines(log.getvalue())
        assert first == second == by_django
        assert by_django["bearer"] == "agent:ada"
        assert ada not in log.getvalue()


def test_a_server_that_was_asked_nothing_of_late_writes_no_line():
    with written() as log:
        access_log.AccessLog().write()
    assert log.getvalue() == ""


async def noted(path: str) -> None:
    """Note a request of an MCP client, and write it."""
    asked = exchanges.AnsweredRequest("POST", "https", path, "192.0.2.7", 404, 2, 90, "r1", "", 0.1)
    taken = access_log.AccessLog()
    taken.add(access_log.LogEntry(asked, 404, 90, "r1", "", 0.0, 0.1, "mcp"))
    taken.write()


def test_a_token_that_somebody_put_into_an_address_is_withheld():
    token = api_tokens.make(lambda letters: letters[0])
    with written() as log:
        asyncio.run(noted(f"/mcp/{token}"))
        asyncio.run(noted(f"/mcp/ada/s/{'s' * access_log.MAX_KEPT_LENGTH}/{token}"))
    assert token not in log.getvalue()
    assert log.getvalue().count(f"{api_tokens.prefix(token)}[withheld]") == 2


def test_whoever_takes_lines_apart_no_further_gets_a_record_for_each(server, ada, caplog):
    request = Request(token=ada)
    server.warm(request)
    caplog.clear()
    server.ask_all(request, request)
    server.ask_django(request)
    records = [record for record in caplog.records if record.name == LOGGER]
    first, second, by_django = [lines(production().format(record))[0] for record in records]
    assert first == second == by_django
    plainly = [stdlib.ProcessorFormatter.format(production(), record) for record in records]
    assert lines(plainly[0]) == lines(plainly[2])


def test_the_line_has_the_id_that_the_client_is_told(server, ada, caplog):
    server.warm(Request(token=ada))
    caplog.clear()
    answer = server.ask(Request(token=ada))
    assert [record.msg["request_id"] for record in caplog.records if record.name == LOGGER] == [
        answer.header("x-request-id")
    ]


def test_where_more_than_a_line_is_logged_django_does_it(server, ada, caplog):
    server.warm(Request(token=ada))
    with caplog.at_level(logging.DEBUG, LOGGER):
        assert server.ask(Request(token=ada)).by_django
    assert not server.ask(Request(token=ada)).by_django


def test_who_asks_too_often_is_told_by_django_when_to_come_again(stored, ada, settings):
    settings.TOOLBELT_API_PER_MINUTE = 5
    server = Server()
    answers = server.ask_all(*[Request(token=ada)] * 7)
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
    assert [answer.by_django for answer in answers] == [*[False] * 5, True, True]
    assert answers[-1].header("retry-after").isdecimal()


def test_a_request_that_django_answers_is_taken_off_the_limit_once(stored, ada, settings, monkeypatch):
    settings.TOOLBELT_API_PER_MINUTE = 100
    server = Server()
    taken: list[str] = []
    take = limits.rates.take

    def noted(caller: str, per_minute: int, count: int = 1) -> float:
        taken.extend([caller] * count)
        return take(caller, per_minute, count)

    monkeypatch.setattr(limits.rates, "take", noted)
    server.ask_all(Request(token=ada), Request(token=ada), Request(token=ada, headers={"If-None-Match": "*"}))
    assert taken == [ada[:11]] * 3
