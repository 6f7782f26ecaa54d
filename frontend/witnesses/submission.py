"""One request to one witness: `POST add-checkpoint` (C2SP tlog-witness), and the answer.

Goes out as webhooks do: the name is looked up once, no address is reached that may not be, certificates are checked, no
redirect is followed, no connection kept, the answer is bounded, and everything together has the witness's time-out.
Guarantees that all that the other side does becomes a Reply. SECURITY: none of it repeats what the other side has sent
but a number. Imported only where a witness is configured, for what its library would cost every other start.
"""

import re
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import httpcore
import trio

from frontend.http.client_bodies import OutgoingBody
from frontend.telemetry.logs import log
from frontend.webhooks.network import Blocked, EndpointUnreached, Network, make_tls
from frontend.witnesses.reply import Reply, WitnessRequests
from ipc.network.addresses import is_private, is_public
from ipc.operations.witnesses import ToCosign
from ipc.settings import WitnessSettings

PATH: Final = "/add-checkpoint"
MAX_LOOKUPS: Final = 2
"""A silent name server keeps threads beyond their requests: at most this many for one witness."""
_SIZE = re.compile(rb"(0|[1-9][0-9]{0,17})\n")


def open_submission(version: str, resolve: Mapping[str, str], witness: WitnessSettings) -> WitnessRequests:
    """Make it, with the system's authorities."""
    return HttpSubmission(version, resolve, witness, make_tls())


def body_of(asked: ToCosign) -> bytes:
    """The old size, the proof that the checkpoint continues it, and the checkpoint."""
    lines = (f"old {asked.old_size}", *asked.proof, "", "")
    return ("\n".join(lines) + asked.note).encode()


class HttpSubmission:
    """Requests to one witness. `resolve` is egress.unsafe_resolve."""

    def __init__(
        self, version: str, resolve: Mapping[str, str], witness: WitnessSettings, tls: ssl.SSLContext
    ) -> None:  # fmt: skip
        parts = urlsplit(witness.url)
        self._url = httpcore.URL(
            scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target=parts.path + PATH
        )
        self._headers = [
            ("host", parts.netloc), ("user-agent", f"action-gateway/{version}"), ("connection", "close"),
            ("content-type", "text/plain; charset=utf-8"),
        ]  # fmt: skip
        self._witness = witness
        self._resolve = resolve
        self._tls = tls
        self._lookups = trio.CapacityLimiter(MAX_LOOKUPS)

    async def submit(self, asked: ToCosign) -> Reply:
        """See Submission."""
        network = Network(self._resolve, self._lookups, self._may_reach)
        problem = "no answer in time"
        with trio.move_on_after(self._witness.timeout_seconds):
            try:
                return await self._answer(network, body_of(asked))
            except (Blocked, EndpointUnreached) as error:
                problem = str(error)
            except (httpcore.ProtocolError, httpcore.NetworkError):
                problem = "the connection ended without a whole answer in HTTP"
            except Exception as error:
                log.error("a witness was not asked: internal error", witness=self._witness.name,
                          why=type(error).__name__)  # fmt: skip
                problem = "internal error"
            finally:
                await network.close()
        return Reply(problem=problem)

    def _may_reach(self, address: str) -> bool:
        return is_public(address) or (self._witness.private_network and is_private(address))

    async def _answer(self, network: Network, body: bytes) -> Reply:
        headers = [*self._headers, ("content-length", str(len(body)))]
        connection = httpcore.AsyncHTTPConnection(self._url.origin, ssl_context=self._tls, network_backend=network)
        async with connection.stream("POST", self._url, headers=headers, content=OutgoingBody(body)) as response:
            data = await response.aread()
        told = _SIZE.fullmatch(data) if response.status == 409 else None
        try:
            lines = data.decode() if response.status == 200 else ""
        except UnicodeDecodeError:
            return Reply(response.status, problem="its answer is no text")
        return Reply(response.status, lines, None if told is None else int(told[1]))
