"""The deliverer of webhooks with its supervisor, and with the notary, of which it may ask three operations alone.

SECURITY: it talks to servers of strangers. So the union of its operations is small: it reaches no event, no evidence
and no key.
"""

from ipc.messages.control import AttachNotary, Stop, TryWebhook, WebhookTried
from ipc.messages.message import Message
from ipc.messages.notary_frames import Answered
from ipc.operations.askable import AnyOfDeliverer
from ipc.settings import Settings


class StartDeliverer(Message, frozen=True):
    """First message to a deliverer. `is_successor`: the gateway serves already, and a secret file that can't be used
    must not end it."""

    deliverer_id: str
    settings: Settings
    is_successor: bool = False


class DelivererReady(Message, frozen=True):
    """Its endpoints can be used, and its walls stand."""


class EndpointGone(Message, frozen=True):
    """An endpoint has answered 410: nothing more is sent to it until a reload."""

    endpoint: str


class AskedByDeliverer(Message, frozen=True):
    """One operation and its number."""

    number: int
    operation: AnyOfDeliverer


class Welcome(Message, frozen=True):
    """The first message of the notary. No clock may be before `newest_evidence` (Unix seconds)."""

    newest_evidence: float


class Woken(Message, frozen=True):
    """Endpoints that deliveries were written for."""

    endpoints: tuple[str, ...]


SupervisorToDeliverer = StartDeliverer | AttachNotary | TryWebhook | Stop
DelivererToSupervisor = DelivererReady | WebhookTried | EndpointGone
DelivererToNotary = AskedByDeliverer
NotaryToDeliverer = Welcome | Answered | Woken
