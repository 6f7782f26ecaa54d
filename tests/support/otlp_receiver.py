"""A collector of traces and logs by the official package: keeps what it is sent, or hangs, or refuses."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.gateway import wait_for


@dataclass
class Received:
    """The requests of one collector. `status` is its answer; while `goes_on` is not set it answers nothing."""

    endpoint: str = ""
    status: int = 200
    asked: int = 0
    """Requests with spans so far, whatever it answered."""
    events_asked: int = 0
    """The same with events."""
    refused: int = 0
    """Spans, or events, that it says it refused."""
    goes_on: threading.Event = field(default_factory=threading.Event)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    event_bodies: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        """Every span so far."""
        made = []
        for body in list(self.bodies):
            request = ExportTraceServiceRequest.FromString(body)
            made += [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]
        return made

    @property
    def records(self) -> list[LogRecord]:
        """Every log record so far."""
        made = []
        for body in list(self.event_bodies):
            request = ExportLogsServiceRequest.FromString(body)
            made += [
                record for one in request.resource_logs for scope in one.scope_logs for record in scope.log_records
            ]
        return made

    def events(self) -> list[dict[str, Any]]:
        """The events in their bodies."""
        return [json.loads(record.body.string_value) for record in self.records]

    def traces_of_events(self) -> set[str | None]:
        """The trace ids of events, as the gateway names them."""
        return {event.get("trace_id") for event in self.events()}

    def roots(self, trace_id: str) -> list[Span]:
        """The spans of the calls of a trace, in the order in which they came."""
        wanted = bytes.fromhex(trace_id.removeprefix("trc_").replace("-", ""))
        return [span for span in self.spans if span.trace_id == wanted and not span.parent_span_id]

    def trace(self, trace_id: str) -> dict[str, Span]:
        """The spans of a trace once its first one is here, by name."""
        wanted = bytes.fromhex(trace_id.removeprefix("trc_").replace("-", ""))

        def found() -> dict[str, Span]:
            return {span.name: span for span in self.spans if span.trace_id == wanted}

        made: dict[str, Span] = wait_for(found, f"the spans of {trace_id}")
        return made


def attributes(span: Span | LogRecord) -> dict[str, Any]:
    """The texts and numbers of a span or a log record."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in span.attributes}


@contextmanager
def receiver() -> Iterator[Received]:
    """A collector on a port of its own."""
    received = Received()
    received.goes_on.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            is_of_events = self.path == "/v1/logs"
            received.asked += not is_of_events
            received.events_asked += is_of_events
            received.goes_on.wait(300)
            if received.status == 200 and is_of_events:
                received.event_bodies.append(body)
            elif received.status == 200 and self.path == "/v1/traces":
                received.headers.append({name.lower(): value for name, value in self.headers.items()})
                received.bodies.append(body)
            told = ExportTraceServiceResponse()
            told.partial_success.rejected_spans = received.refused
            answer = told.SerializeToString()
            self.send_response(received.status if self.path in ("/v1/traces", "/v1/logs") else 404)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        received.goes_on.set()
        server.shutdown()
        server.server_close()
        thread.join(60)
