"""One collector: its address, its headers, and requests to it.

Guarantees that a batch has its answer or its problem within EXPORT_SECONDS, repeats included, that none is sent again
that was taken, that no redirect is followed, and that an answer takes bounded memory. The operator names the address,
so any is connected to. SECURITY: a problem names neither address nor header.
"""

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import httpcore
import trio
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from frontend.http.client_bodies import AnswerTooLarge, OutgoingBody, read_at_most
from frontend.telemetry.logs import log
from frontend.webhooks.network import MAX_ANSWER_BYTES, Blocked, EndpointUnreached, Network
from frontend.webhooks.outcome import asked_pause
from ipc.configuration.telemetry import OtlpSettings
from ipc.network.tls import client_context
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, read_private

EXPORT_SECONDS: Final = 20.0
"""For one batch, repeats included."""
REQUEST_SECONDS: Final = 10.0
"""For one request."""
FIRST_PAUSE_SECONDS: Final = 1.0
"""Before the first repeat; twice as long before each further one."""
MOST_PAUSE_SECONDS: Final = 600.0
"""The longest pause that a collector can ask for."""
_REPEATED: Final = frozenset({429, 502, 503, 504})
"""Answers after which the same batch is sent again (OTLP specification, "Retryable Response Codes")."""
_PORTS: Final = {"http": 80, "https": 443}
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([!-~](?:[ -~]{0,4094}[!-~])?)")
MAX_HEADERS: Final = 32
_OWN_HEADERS: Final = frozenset({
    "host", "content-type", "content-length", "content-encoding", "connection", "user-agent", "transfer-encoding",
    "te", "trailer", "upgrade", "expect",
})  # fmt: skip
"""Headers that the exporter decides on, or that would change the form of the request."""


class OtlpSignal(NamedTuple):
    """Where batches of spans, or of events, go below the endpoint, and how many of one an answer says were refused."""

    refused_line: str
    """The log line for that."""
    path: str
    refused: Callable[[bytes], int]


SPANS: Final = OtlpSignal(
    "the collector refuses spans", "/v1/traces",
    lambda answer: ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans,
)  # fmt: skip
EVENTS: Final = OtlpSignal(
    "the collector refuses events", "/v1/logs",
    lambda answer: ExportLogsServiceResponse.FromString(answer).partial_success.rejected_log_records,
)  # fmt: skip


class NotExported(Exception):
    """The collector did not take a batch. A sentence without address and header; `status` is that of its answer, 0
    without one that ends the batch."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class _TryAgain(NotExported):
    """The same, and it may take the batch later; `pause` is what it asked for, in seconds."""

    def __init__(self, text: str, pause: float = 0.0) -> None:
        super().__init__(text)
        self.pause = pause


class OtlpCollector(Protocol):
    """Where batches go."""

    async def send(self, body: bytes, signal: OtlpSignal) -> int:
        """Send one batch; return how many of its spans or events the collector refused. Raises NotExported."""


class CollectorClient:
    """Sends batches of spans and events. Makes its context of TLS when it is made, which reads files and blocks."""

    def __init__(self, otlp: OtlpSettings, version: str) -> None:
        """Raises OSError for a `ca_file` without certificates."""
        assert otlp.endpoint is not None, "without a collector there is no exporter"
        parts = urlsplit(otlp.endpoint)
        self._host, self._port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        self._scheme, self._path = parts.scheme, parts.path.rstrip("/")
        self._always = {
            "host": parts.netloc, "content-type": "application/x-protobuf", "connection": "close",
            "user-agent": f"action-gateway/{version}",
        }  # fmt: skip
        self._headers_file = None if otlp.headers_file is None else Path(otlp.headers_file)
        self._tls = client_context(otlp.ca_file) if parts.scheme == "https" else client_context()
        self._lookups = trio.CapacityLimiter(1)
        self._not_before: dict[str, float] = {}
        """Path -> the end of the pause that the collector asked for there; no batch is sent sooner."""
        self._refuse: set[str] = set()
        """Paths at which it refused a part of the last batch."""

    def headers(self) -> dict[str, str]:
        """The headers of the file as it is now. Raises PrivateFileError."""
        return {} if self._headers_file is None else headers_in(self._headers_file)

    async def send(self, body: bytes, signal: OtlpSignal = SPANS) -> int:
        """See OtlpCollector."""
        not_before = self._not_before.get(signal.path, -math.inf)
        problem, pause = "no answer in time", FIRST_PAUSE_SECONDS
        if not_before > trio.current_time():
            problem = "it asked for a pause"
        with trio.move_on_after(EXPORT_SECONDS) as time_for_batch:
            await trio.sleep_until(not_before)
            while True:
                try:
                    return self._noted(await self._sent(body, signal, time_for_batch), signal)
                except _TryAgain as error:
                    problem, now = str(error), trio.current_time()
                    self._not_before[signal.path] = now + min(error.pause, MOST_PAUSE_SECONDS)
                    await trio.sleep_until(max(self._not_before[signal.path], now + pause))
                    pause *= 2
        raise NotExported(problem)

    def _noted(self, refused: int, signal: OtlpSignal) -> int:
        """The same number. Log it where the batch before had none refused."""
        if refused and signal.path not in self._refuse:
            log.warning(signal.refused_line, count=refused)
        (self._refuse.add if refused else self._refuse.discard)(signal.path)
        return refused

    async def _sent(self, body: bytes, signal: OtlpSignal, time_for_batch: trio.CancelScope) -> int:
        network = Network({}, self._lookups, lambda _address: True)
        try:
            with trio.fail_after(REQUEST_SECONDS) as time_for_head:
                return await self._answered(network, body, signal, (time_for_batch, time_for_head))
        except trio.TooSlowError:
            raise _TryAgain("no answer in time") from None
        except (Blocked, EndpointUnreached) as error:
            raise _TryAgain(str(error)) from None
        except (httpcore.ProtocolError, httpcore.NetworkError):
            raise _TryAgain("the connection ended without an answer in HTTP") from None
        except PrivateFileError:
            raise NotExported("the file of headers can't be used") from None
        finally:
            with trio.CancelScope(shield=True):
                await network.close()

    async def _answered(
        self, network: Network, body: bytes, signal: OtlpSignal, until_taken: tuple[trio.CancelScope, ...]
    ) -> int:  # fmt: skip
        """Send it once; the deadlines of `until_taken` end once the collector has taken it."""
        url = httpcore.URL(
            scheme=self._scheme, host=self._host, port=self._port, target=f"{self._path}{signal.path}"
        )  # fmt: skip
        headers = list((self.headers() | self._always | {"content-length": str(len(body))}).items())
        connection = httpcore.AsyncHTTPConnection(url.origin, ssl_context=self._tls, network_backend=network)
        async with connection.stream("POST", url, headers=headers, content=OutgoingBody(body)) as response:
            status, text = response.status, f"the collector answered {response.status}"
            if status in _REPEATED:
                asked = next((value for name, value in response.headers if name.lower() == b"retry-after"), b"")
                raise _TryAgain(text, asked_pause(asked.decode("latin-1").strip(), time.time()))
            if not 200 <= status < 300:
                raise NotExported(text, status)
            for scope in until_taken:
                scope.deadline = math.inf
            return await _refused(response, signal)


async def _refused(response: httpcore.Response, signal: OtlpSignal) -> int:
    """How many an answer says were refused; 0 if it can't be read. The collector has the batch: another request would
    send it twice."""
    refused = 0
    with (
        trio.move_on_after(REQUEST_SECONDS),
        suppress(httpcore.ProtocolError, httpcore.NetworkError, AnswerTooLarge, DecodeError),
    ):
        refused = signal.refused(await read_at_most(response, MAX_ANSWER_BYTES))
    return max(0, refused)


def headers_in(file: Path) -> dict[str, str]:
    """The headers of a private file, `Name: value` lines. Raises PrivateFileError; it repeats no value."""
    try:
        lines = [line for line in read_private(file).decode("ascii").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise PrivateFileError(f"{file}: must be a text of printable ASCII.", Exit.CONFIG) from None
    found = [_HEADER.fullmatch(line.strip()) for line in lines]
    if len(found) > MAX_HEADERS or not all(found):
        raise PrivateFileError(f"{file}: must have lines like Name: value, {MAX_HEADERS} at most.", Exit.CONFIG)
    pairs = [(one[1].lower(), one[2]) for one in found if one is not None]
    headers = dict(pairs)
    if len(headers) < len(pairs) or not _OWN_HEADERS.isdisjoint(headers):
        raise PrivateFileError(
            f"{file}: must name each header once, and none of {', '.join(sorted(_OWN_HEADERS))}.", Exit.CONFIG
        )
    return headers
