"""Tests that a request is traced from the agent through Toolbelt to the upstream server, and measured."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import prometheus_client
import pytest
from opentelemetry.sdk import metrics, trace
from opentelemetry.sdk.metrics import export as metric_export
from opentelemetry.sdk.trace import export
from opentelemetry.sdk.trace.export import in_memory_span_exporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, Request
from tests.plugins.upstream import serving
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import upstream_servers
from toolbelt.runtime import plugins, telemetry
from toolbelt.runtime.records import call_metrics
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import server_lists
from toolbelt.store import snapshots

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
UNSAMPLED = f"00-{TRACE}-{PARENT}-00"

# The SDK has one provider of traces for a process.
_spans = in_memory_span_exporter.InMemorySpanExporter()
_traces = trace.TracerProvider()
_traces.add_span_processor(export.SimpleSpanProcessor(_spans))


class Telemetry:
    """The exported spans and metrics."""

    def __init__(self, reader: metric_export.InMemoryMetricReader) -> None:
        self._reader = reader

    def spans(self) -> dict[str, trace.ReadableSpan]:
        return {span.name: span for span in _spans.get_finished_spans()}

    def own(self) -> dict[str, trace.ReadableSpan]:
        """Return the spans without those of the MCP client, which lists a server when it connects."""
        return {
            name: span
            for name, span in self.spans().items()
            if span.instrumentation_scope and span.instrumentation_scope.name == "toolbelt"
        }

    def measured(self, name: str) -> list[Mapping[str, Any]]:
        """Return the attributes of each series of a metric."""
        data = self._reader.get_metrics_data()
        return [
            dict(point.attributes or {})
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    reader = metric_export.InMemoryMetricReader()
    monkeypatch.setattr(_traces, "shutdown", lambda: None)
    telemetry.use(_traces, metrics.MeterProvider(metric_readers=[reader]))
    _spans.clear()
    yield Telemetry(reader)
    telemetry.stop()


@pytest.fixture
def token(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Grant ada the tools of a server that the official SDK serves over HTTP, and yield her token."""
    monkeypatch.setenv("MCP_TOKEN", serving.TOKEN)
    with serving.served() as address:
        connection = {"url": address, "headers": {"Authorization": "Bearer ${MCP_TOKEN}"}}
        upstream_servers.add(SETUP, "sums", connection, trusted=True)
        server_lists.refresh(["sums"], lambda name, answer: upstream_servers.record(SETUP, name, answer))
        belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["sums__add"]}]})
        yield tokens.issue(SETUP, agent="ada").text
        plugins.stop()
        snapshots.forget()


@pytest.fixture(params=[OLD, NEW])
def client(request: Any, token: str) -> Client:
    return Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=request.param)


SUM = {"name": "sums__add", "arguments": {"one": 1, "other": 2}}


def test_a_trace_continues_from_the_agent_to_the_upstream_server(exported: Telemetry, client: Client) -> None:
    result = client.ask("tools/call", {**SUM, "_meta": {"traceparent": TRACEPARENT}}).result
    assert result["content"] == [{"type": "text", "text": "3"}]
    spans = exported.spans()
    request, call = spans["tools/call sums__add"], spans["execute_tool sums__add"]
    sent = spans["MCP send tools/call add"]
    assert {span.context.trace_id for span in (request, call, sent) if span.context} == {int(TRACE, 16)}
    assert request.kind is SpanKind.SERVER
    assert request.parent is not None
    assert request.parent.span_id == int(PARENT, 16)
    assert call.parent == request.context
    assert call.attributes is not None
    assert call.attributes["gen_ai.tool.name"] == "sums__add"
    assert call.attributes["gen_ai.agent.id"] == "ada"
    assert call.attributes["toolbelt.outcome"] == "ok"
    assert sent.parent == call.context
    # The upstream server runs in this process, so its own span is exported, too.
    served = spans["tools/call add"]
    assert served.parent is not None
    assert sent.context is not None
    assert (served.parent.trace_id, served.parent.span_id) == (int(TRACE, 16), sent.context.span_id)


def test_the_message_s_trace_overrides_that_of_the_headers(exported: Telemetry, client: Client) -> None:
    client.endpoint.send(client.request("tools/call", SUM, traceparent=TRACEPARENT))
    request = exported.spans()["tools/call sums__add"]
    assert request.parent is not None
    assert request.parent.span_id == int(PARENT, 16)
    _spans.clear()
    other = f"00-{'1' * 32}-{'2' * 16}-01"
    params = {**SUM, "_meta": {"traceparent": other}}
    client.endpoint.send(client.request("tools/call", params, traceparent=TRACEPARENT))
    request = exported.spans()["tools/call sums__add"]
    assert request.parent is not None
    assert request.parent.span_id == int("2" * 16, 16)


def test_a_call_over_http_is_traced(exported: Telemetry, token: str) -> None:
    endpoint = Endpoint(prepared_answers.answers())
    body = {"tool": "sums__add", "arguments": {"one": 1, "other": 2}}
    request = Request(
        body=body, path="/api/v1/agents/ada/calls", token=token, headers={"traceparent": TRACEPARENT}
    )
    assert endpoint.send(request).json()["is_error"] is False
    spans = exported.spans()
    call = spans["execute_tool sums__add"]
    assert call.parent is not None
    assert call.parent.span_id == int(PARENT, 16)
    assert spans["MCP send tools/call add"].parent == call.context


def test_a_failed_call_is_an_error_though_the_response_is_200(exported: Telemetry, client: Client) -> None:
    assert client.call("sums__add", {"one": "x", "other": 2}).result["isError"] is True
    spans = exported.spans()
    for name, kind in (
        ("tools/call sums__add", "tool_error"),
        ("execute_tool sums__add", "invalid-arguments"),
    ):
        span = spans[name]
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes is not None
        assert span.attributes["error.type"] == kind
    assert exported.measured("mcp.server.operation.duration") == [
        {"mcp.method.name": "tools/call", "error.type": "tool_error"}
    ]


def test_error_messages_are_not_exported() -> None:
    spans = in_memory_span_exporter.InMemorySpanExporter()
    traces = trace.TracerProvider()
    traces.add_span_processor(export.SimpleSpanProcessor(spans))
    secret = "hunter2 is wrong"
    with (
        pytest.raises(ValueError, match=secret),
        traces.get_tracer("x").start_as_current_span("MCP send tools/call add", attributes={"a": 1}),
    ):
        raise ValueError(secret)
    (span,) = spans.get_finished_spans()
    assert secret in span.to_json()
    bare = telemetry.without_texts(span)
    assert secret not in bare.to_json()
    assert (bare.name, bare.attributes, bare.context) == (span.name, span.attributes, span.context)
    assert bare.status.status_code is StatusCode.ERROR


def test_a_protocol_error_marks_the_span_as_failed(exported: Telemetry, client: Client) -> None:
    client.ask("tools/call", {"name": 7})
    (span,) = exported.own().values()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == "ProtocolError"


def test_list_and_surface_requests_are_traced_only_within_a_sampled_trace(
    exported: Telemetry, client: Client
) -> None:
    surface = "/api/v1/agents/ada/surface"
    for parent in (None, UNSAMPLED):
        client.endpoint.send(client.request("tools/list", traceparent=parent))
        client.endpoint.send(
            Request(method="GET", path=surface, token=client.token, headers={"traceparent": parent})
        )
    assert exported.own() == {}
    client.endpoint.send(client.request("tools/list", traceparent=TRACEPARENT))
    client.endpoint.send(
        Request(method="GET", path=surface, token=client.token, headers={"traceparent": TRACEPARENT})
    )
    assert set(exported.own()) == {"tools/list", "api:get_surface"}
    assert {"mcp.method.name": "tools/list"} in exported.measured("mcp.server.operation.duration")


@pytest.mark.parametrize("parent", ["", "junk", "00-0-0-01", "é" * 60, 7, None, ["x"], {"a": 1}])
def test_a_malformed_parent_starts_a_new_trace(exported: Telemetry, client: Client, parent: Any) -> None:
    assert client.ask("tools/call", {**SUM, "_meta": {"traceparent": parent}}).status == 200
    assert exported.spans()["tools/call sums__add"].parent is None


def test_prometheus_counts_calls_by_agent_tool_and_outcome(client: Client) -> None:
    def value(**labels: str) -> float:
        return prometheus_client.REGISTRY.get_sample_value("toolbelt_tool_calls_total", labels) or 0.0

    ok = {"agent": "ada", "tool": "sums__add", "outcome": "ok"}
    unknown = {"agent": "ada", "tool": call_metrics.OTHER, "outcome": "unknown-tool"}
    before = value(**ok), value(**unknown)
    client.ask("tools/call", SUM)
    client.call("made_up_by_a_model")
    assert (value(**ok), value(**unknown)) == (before[0] + 1, before[1] + 1)


def test_agents_and_tools_beyond_the_limit_share_one_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_metrics, "MAX_LABELS", 3)
    monkeypatch.setattr(call_metrics, "_labels", set())
    call_metrics._metrics.cache_clear()
    for number in range(50):
        call_metrics._metrics(f"agent{number}", f"tool{number}", "ok")
    assert len(call_metrics._labels) == 4
    call_metrics._metrics.cache_clear()


@pytest.mark.parametrize(
    ("environment", "signals"),
    [
        ({}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, ["TRACES", "METRICS"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, ["TRACES"]),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_METRICS_EXPORTER": "none"},
            ["TRACES"],
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, []),
    ],
)
def test_the_standard_variables_determine_what_is_exported(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], signals: list[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, setting in environment.items():
        monkeypatch.setenv(name, setting)
    assert telemetry.configured() == signals


def test_without_an_exporter_opentelemetry_is_not_imported() -> None:
    code = (
        "import os, sys; os.environ['TOOLBELT_ENV'] = 'test'\n"
        "import toolbelt.asgi\n"
        "from toolbelt.runtime import telemetry; telemetry.start()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "[]"


SENDING = """
import os, types
os.environ.update(TOOLBELT_ENV="test", DJANGO_SETTINGS_MODULE="toolbelt.settings")
import django; django.setup()
from toolbelt.core import request_key
from toolbelt.runtime import telemetry
from toolbelt.runtime.records import recordings
telemetry.start()
key = request_key.RequestKey("ada")
made = recordings.Recording(key=key, tool="sums__add", arguments={}, plugin="sums", outcome="ok")
with telemetry.mcp_request("tools/call", "sums__add", None), telemetry.call(made):
    pass
telemetry.stop()
"""


def test_a_stopping_server_sends_the_remaining_telemetry() -> None:
    received: dict[str, bytes] = {}

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    with serving.in_thread(collector):
        endpoint = f"http://127.0.0.1:{collector.server_port}"
        environment = {
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }
        subprocess.run([sys.executable, "-c", SENDING], env=environment, check=True)
    assert b"execute_tool sums__add" in received["/v1/traces"]
    assert b"mcp.server.operation.duration" in received["/v1/metrics"]
    assert b"toolbelt" in received["/v1/traces"]
