"""Traces and metrics for OpenTelemetry (the extra ``otel``).

Names follow OpenTelemetry's conventions for MCP and for generative AI. Calls always have spans. Questions (surfaces,
lists) only have spans within a sampled trace of the caller's, because they are very frequent. OpenTelemetry is imported
by :func:`start`, and only where its environment variables name an exporter.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

import toolbelt
from toolbelt.runtime.records import call_metrics

if TYPE_CHECKING:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk import trace as sdk_trace

    from toolbelt.runtime.records import recordings

# Each signal has an exporter if one of its two variables is set.
_SIGNALS = ("TRACES", "METRICS")
# How much of a tool's name is in the name of a span.
MAX_TARGET = 200
# Requests that reach a tool or a server.
_TRACED = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})
_NOTHING = contextlib.nullcontext()
_HEADERS = frozenset({b"traceparent", b"tracestate"})

_log = structlog.get_logger(__name__)


class _Exporters(NamedTuple):
    """The exporters of a process; ``shutdown`` sends the remaining data."""

    tracer: trace.Tracer
    current_span: Callable[[], trace.Span]
    requests: metrics.Histogram
    shutdown: Callable[[], object]


_exporters: _Exporters | None = None


def start() -> None:
    """Export traces and metrics, if the environment names an exporter (``OTEL_EXPORTER_OTLP_ENDPOINT``)."""
    if _exporters is not None or not (signals := configured()):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http import metric_exporter, trace_exporter
        from opentelemetry.sdk import metrics, resources, trace
        from opentelemetry.sdk.metrics import export as metric_export
        from opentelemetry.sdk.trace import export as trace_export
    except ImportError:
        _log.error("OpenTelemetry is configured but not installed: install the extra 'otel'")
        return
    about = resources.Resource.create(
        {
            "service.name": os.environ.get("OTEL_SERVICE_NAME", "toolbelt"),
            "service.version": toolbelt.__version__,
        }
    )
    traces = trace.TracerProvider(resource=about)
    if "TRACES" in signals:

        class Exporter(trace_exporter.OTLPSpanExporter):
            def export(self, spans: Sequence[sdk_trace.ReadableSpan]) -> Any:
                return super().export([without_texts(span) for span in spans])

        traces.add_span_processor(trace_export.BatchSpanProcessor(Exporter()))
    readers = []
    if "METRICS" in signals:
        readers.append(metric_export.PeriodicExportingMetricReader(metric_exporter.OTLPMetricExporter()))
    use(traces, metrics.MeterProvider(metric_readers=readers, resource=about))


def configured() -> list[str]:
    """Return the signals for which the environment names an exporter."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    return [
        signal
        for signal in _SIGNALS
        if os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp") == "otlp"
        and (
            os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
            or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
        )
    ]


def without_texts(span: sdk_trace.ReadableSpan) -> sdk_trace.ReadableSpan:
    """Return a span without the texts of errors. The MCP client keeps them, and a server's may repeat a secret."""
    from opentelemetry.sdk import trace
    from opentelemetry.trace import Status

    return trace.ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def use(traces: Any, meters: Any) -> None:
    """Export with these providers of OpenTelemetry's SDK. Spans of the MCP client follow the first one's."""
    global _exporters
    from opentelemetry import trace

    trace.set_tracer_provider(traces)

    def shutdown() -> None:
        traces.shutdown()
        meters.shutdown()

    _exporters = _Exporters(
        traces.get_tracer("toolbelt", toolbelt.__version__),
        trace.get_current_span,
        meters.get_meter("toolbelt", toolbelt.__version__).create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="The duration of MCP requests.",
            explicit_bucket_boundaries_advisory=call_metrics.BUCKETS,
        ),
        shutdown,
    )


def stop() -> None:
    """Send what is left, and export no more."""
    global _exporters
    exporting, _exporters = _exporters, None
    if exporting is not None:
        exporting.shutdown()


def continued(
    carrier: Mapping[str, Any] | Iterable[tuple[bytes, bytes]],
) -> contextlib.AbstractContextManager[None]:
    """Continue the caller's trace, which the ``_meta`` of a message or the headers of a request name, if they do."""
    if _exporters is None or not (fields := _trace_fields(carrier)):
        return _NOTHING
    return _continued(fields)


@contextlib.contextmanager
def _continued(fields: Mapping[str, str]) -> Iterator[None]:
    from opentelemetry import context
    from opentelemetry.trace.propagation import tracecontext

    token = context.attach(tracecontext.TraceContextTextMapPropagator().extract(fields))
    try:
        yield
    finally:
        context.detach(token)


def carried() -> dict[str, str]:
    """Return the current trace for another process; empty without one."""
    fields: dict[str, str] = {}
    if _exporters is not None:
        from opentelemetry.trace.propagation import tracecontext

        tracecontext.TraceContextTextMapPropagator().inject(fields)
    return fields


@contextlib.contextmanager
def mcp_request(method: str, target: str, meta: Any) -> Iterator[Callable[[str], None]]:
    """Trace and measure a request of an MCP client; yield what marks it as failed, given the kind of error."""
    if _exporters is None:
        yield _unmarked
        return
    exporting = _exporters
    attributes = {"mcp.method.name": method}
    begun = time.perf_counter()
    span: trace.Span | None = None

    def fail(kind: str) -> None:
        attributes["error.type"] = kind
        if span is not None:
            _fail(span, kind)

    try:
        with continued(meta if isinstance(meta, dict) else {}):
            if method not in _TRACED and not _is_sampled(exporting):
                yield fail
                return
            from opentelemetry import trace

            with exporting.tracer.start_as_current_span(
                _name(method, target), kind=trace.SpanKind.SERVER, attributes=attributes
            ) as span:
                try:
                    yield fail
                except BaseException as error:
                    fail(type(error).__name__)
                    raise
    finally:
        exporting.requests.record(time.perf_counter() - begun, attributes)


def agent_request(name: str) -> contextlib.AbstractContextManager[object]:
    """Trace an agent's request over HTTP, if it belongs to a sampled trace."""
    if _exporters is None or not _is_sampled(_exporters):
        return _NOTHING
    from opentelemetry import trace

    return _exporters.tracer.start_as_current_span(name, kind=trace.SpanKind.SERVER)


@contextlib.contextmanager
def call(recording: recordings.Recording) -> Iterator[None]:
    """Trace a call from its admission to its answer. A failed one is marked, whatever status the response has."""
    if _exporters is None:
        yield
        return
    with _exporters.tracer.start_as_current_span(_name("execute_tool", recording.tool)) as span:
        try:
            yield
        finally:
            if span.is_recording():
                span.update_name(_name("execute_tool", recording.tool))
                span.set_attributes(
                    {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": recording.tool,
                        "gen_ai.agent.id": recording.key.agent,
                        "toolbelt.plugin": recording.plugin,
                        "toolbelt.outcome": recording.outcome,
                        "toolbelt.request_id": recording.key.request_id or "",
                        **(
                            {"toolbelt.revision": recording.revision}
                            if recording.revision is not None
                            else {}
                        ),
                        **(
                            {"gen_ai.conversation.id": recording.key.session} if recording.key.session else {}
                        ),
                    }
                )
                if recording.outcome != "ok":
                    _fail(span, recording.outcome)


def _fail(span: trace.Span, kind: str) -> None:
    from opentelemetry import trace

    span.set_attribute("error.type", kind or "cancelled")
    span.set_status(trace.StatusCode.ERROR)


def _name(operation: str, target: str) -> str:
    return f"{operation} {target[:MAX_TARGET]}".rstrip()


def _is_sampled(exporting: _Exporters) -> bool:
    return exporting.current_span().get_span_context().trace_flags.sampled


def _trace_fields(carrier: Mapping[str, Any] | Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    if isinstance(carrier, Mapping):
        pairs = ((name, carrier.get(name)) for name in ("traceparent", "tracestate"))
        return {name: value for name, value in pairs if isinstance(value, str)}
    return {pair[0].decode(): pair[1].decode("latin-1") for pair in carrier if pair[0] in _HEADERS}


def _unmarked(_: str) -> None:
    """Ignore the kind of error: nothing is exported."""
