"""One attempt to deliver: a signed POST and its outcome.

Everything together has the endpoint's time-out. No redirect is followed, no proxy of the environment used, no
connection kept. Guarantees that all that the other side does becomes an Outcome. SECURITY: an Outcome never repeats an
address, a header or sent data. Imported only if an endpoint is configured, since its library would slow every other
start.
"""

import ssl
from collections.abc import Mapping

import httpcore
import trio

from frontend.http.client_bodies import OutgoingBody
from frontend.telemetry.logs import log
from frontend.webhooks.endpoints import WebhookTarget
from frontend.webhooks.network import Blocked, EndpointUnreached, Network, make_tls
from frontend.webhooks.outcome import BLOCKED, FAILED, AttemptOutcome, asked_pause, judged
from frontend.webhooks.signing import signature_headers
from ipc.backends.webhooks import SecretUnfit
from ipc.evidence.records import Delivery
from ipc.process.private_files import PrivateFileError


def open_post(version: str, resolve: Mapping[str, str]) -> "Post":
    """Make it, with the system's authorities."""
    return Post(version, resolve, make_tls())


class Post:
    """Makes attempts. `resolve` is egress.unsafe_resolve."""

    def __init__(self, version: str, resolve: Mapping[str, str], tls: ssl.SSLContext) -> None:
        self._always = {
            "content-type": "application/json", "user-agent": f"action-gateway/{version}", "connection": "close",
        }  # fmt: skip
        self._resolve = resolve
        self._tls = tls

    async def attempt(
        self, endpoint: WebhookTarget, delivery: Delivery, moment: int, lookups: trio.CapacityLimiter
    ) -> AttemptOutcome:
        """See Attempts."""
        network, heard, problem = Network(self._resolve, lookups), list[AttemptOutcome](), "no answer in time"
        with trio.move_on_after(endpoint.timeout_seconds):
            try:
                await self._send(endpoint, delivery, moment, network, heard)
            except Blocked as error:
                return AttemptOutcome(BLOCKED, None, str(error))
            except EndpointUnreached as error:
                problem = str(error)
            except (PrivateFileError, SecretUnfit):
                problem = "the secret can't be read"
            except (httpcore.ProtocolError, httpcore.NetworkError):
                problem = "the connection ended without an answer in HTTP"
            except Exception as error:
                why = type(error).__name__
                log.error("an attempt to deliver failed: internal error", endpoint=endpoint.name, why=why)
                problem = "internal error"
            finally:
                await network.close()
        return heard[0] if heard else AttemptOutcome(FAILED, None, problem)

    async def _send(
        self, endpoint: WebhookTarget, delivery: Delivery, moment: int, network: Network, heard: list[AttemptOutcome]
    ) -> None:
        """Errors after the status is `heard` are ignored."""
        body = delivery.payload.encode()
        signed = signature_headers(endpoint.key(), delivery.event_id, moment, body)
        headers = list((endpoint.headers | self._always | signed | {"content-length": str(len(body))}).items())
        url = httpcore.URL(scheme=endpoint.scheme, host=endpoint.host, port=endpoint.port, target=endpoint.target)
        connection = httpcore.AsyncHTTPConnection(url.origin, ssl_context=self._tls, network_backend=network)
        async with connection.stream("POST", url, headers=headers, content=OutgoingBody(body)) as response:
            asked = next((value for name, value in response.headers if name.lower() == b"retry-after"), b"")
            heard.append(judged(response.status, asked_pause(asked.decode("latin-1").strip(), moment)))
            await response.aread()  # let it say what it says, as long as that is short and in time
