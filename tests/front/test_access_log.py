"""Tests that requests answered in front of Django are request_counts, logged and limited like any other."""

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


def request_counts() -> dict[Any, float]:
    """Return the current request metrics, without durations."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in prometheus_client.REGISTRY.collect()
        if family.name.startswith("django_http")
        for sample in family.samples
        if not sample.name.endswith("_created")
        and not ("seconds" in sample.name and not sample.name.endswith("_count"))
    }


def count_changes(ask: Any) -> dict[Any, float]:
    before = request_counts()
    ask()
    return {
        name: value - before.get(name, 0)
        for name, value in request_counts().items()
        if value != before.get(name, 0)
    }


def test_a_request_is_counted_the_same_as_by_django(server, ada):
    etag = server.ask(Request(token=ada)).header("etag")
    for asked in (*KINDS, {"headers": {"If-None-Match": etag}}):
        request = Request(token=ada, **asked)
        server.warm(request)
        in_front = count_changes(lambda request=request: server.ask(request))
        assert in_front
        assert in_front == count_changes(lambda request=request: server.ask_django(request))


def production_formatter() -> logs.JsonFormatter:
    """Return the formatter that production_formatter uses."""
    before = structlog.get_config()
    configured = logs.configure(level="INFO", as_json=True)["formatters"]["entry"]
    structlog.configure(**before)
    return logs.JsonFormatter(**{name: value for name, value in configured.items() if name != "()"})


def lines(text: str) -> list[dict[str, Any]]:
    """Return the parsed lines, without the values that differ each time."""
    entries = [json.loads(line) for line in text.splitlines()]
    return [
        {**line, "request_id": len(line["request_id"]), "timestamp": len(line["timestamp"])}
        for line in entries
    ]


@contextlib.contextmanager
def captured_log() -> Iterator[io.StringIO]:
    """Yield the stream of request lines that production_formatter writes."""
    logger, stream = logging.getLogger(LOGGER), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(production_formatter())
    # Inside the test, because pytest adds its own handlers to loggers before it.
    previous, logger.handlers, logger.propagate = logger.handlers, [handler], False
    try:
        yield stream
    finally:
        logger.handlers, logger.propagate = previous, True


def test_a_request_is_logged_the_same_as_by_django(server, ada):
    for asked in KINDS:
        request = Request(token=ada, **asked)
        server.warm(request)
        with captured_log() as log:
            answers = *server.ask_each(request, request), server.ask_django(request)
        assert [answer.by_django for answer in answers] == [False, False, True]
        first, second, by_django = lines(log.getvalue())
        assert first == second == by_django
        assert by_django["bearer"] == "agent:ada"
        assert ada not in log.getvalue()


def test_an_empty_access_log_writes_no_line():
    with captured_log() as log:
        access_log.AccessLog().write()
    assert log.getvalue() == ""


async def log_request(path: str) -> None:
    """Log a request of an MCP client."""
    request = exchanges.AnsweredRequest("POST", "https", path, "192.0.2.7", 404, 2, 90, "r1", "", 0.1)
    log = access_log.AccessLog()
    log.add(access_log.LogEntry(request, 404, 90, "r1", "", 0.0, 0.1, "mcp"))
    log.write()


def test_a_token_in_a_url_is_withheld_from_the_log():
    token = api_tokens.make(lambda letters: letters[0])
    with captured_log() as log:
        asyncio.run(log_request(f"/mcp/{token}"))
        asyncio.run(log_request(f"/mcp/ada/s/{'s' * access_log.MAX_KEPT_LENGTH}/{token}"))
    assert token not in log.getvalue()
    assert log.getvalue().count(f"{api_tokens.prefix(token)}[withheld]") == 2


def test_each_request_is_one_log_record_for_other_handlers(server, ada, caplog):
    request = Request(token=ada)
    server.warm(request)
    caplog.clear()
    server.ask_each(request, request)
    server.ask_django(request)
    records = [record for record in caplog.records if record.name == LOGGER]
    first, second, by_django = [lines(production_formatter().format(record))[0] for record in records]
    assert first == second == by_django
    plainly = [stdlib.ProcessorFormatter.format(production_formatter(), record) for record in records]
    assert lines(plainly[0]) == lines(plainly[2])


def test_the_log_line_has_the_request_id_of_the_response(server, ada, caplog):
    server.warm(Request(token=ada))
    caplog.clear()
    answer = server.ask(Request(token=ada))
    assert [record.msg["request_id"] for record in caplog.records if record.name == LOGGER] == [
        answer.header("x-request-id")
    ]


def test_django_answers_while_debug_logging_is_enabled(server, ada, caplog):
    server.warm(Request(token=ada))
    with caplog.at_level(logging.DEBUG, LOGGER):
        assert server.ask(Request(token=ada)).by_django
    assert not server.ask(Request(token=ada)).by_django


def test_a_client_over_the_rate_limit_gets_django_s_retry_after(stored, ada, settings):
    settings.TOOLBELT_API_PER_MINUTE = 5
    server = Server()
    answers = server.ask_each(*[Request(token=ada)] * 7)
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
    assert [answer.by_django for answer in answers] == [*[False] * 5, True, True]
    assert answers[-1].header("retry-after").isdecimal()


def test_a_request_passed_on_to_django_counts_once_against_the_rate_limit(stored, ada, settings, monkeypatch):
    settings.TOOLBELT_API_PER_MINUTE = 100
    server = Server()
    taken: list[str] = []
    take = limits.rates.take

    def noted(caller: str, per_minute: int, count: int = 1) -> float:
        taken.extend([caller] * count)
        return take(caller, per_minute, count)

    monkeypatch.setattr(limits.rates, "take", noted)
    server.ask_each(
        Request(token=ada), Request(token=ada), Request(token=ada, headers={"If-None-Match": "*"})
    )
    assert taken == [ada[:11]] * 3
