"""Supervisor and notary: settings, channels of fronts handed over, the end."""

from typing import ClassVar

from ipc.messages.control import FollowSettings, SettingsFollowed
from ipc.messages.event_reading import AttachEventReader
from ipc.messages.message import Message
from ipc.messages.pinging import Ping, Pong
from ipc.messages.sealing import CutLedger, LedgerCut
from ipc.settings import Settings


class StartNotary(Message, frozen=True):
    """First message to the notary."""

    settings: Settings


class AttachFront(Message, frozen=True):
    """A front's channel comes along. A channel of the same front that was there before is closed."""

    FDS: ClassVar[int] = 1
    front_id: str


class AttachDeliverer(Message, frozen=True):
    """The channel of the deliverer of webhooks comes along, which follows the one before."""

    FDS: ClassVar[int] = 1
    deliverer_id: str


class TieWorker(Message, frozen=True):
    """Both ends of a worker's channel come along, the notary's first: words that the worker has not taken yet are taken
    back at its end. The worker serves this front alone."""

    FDS: ClassVar[int] = 2
    worker_id: str
    front_id: str


class WorkerEnded(Message, frozen=True):
    """A worker's process has ended: what it told before waits in its channel, and more will not come.

    `reason` is an exit code's name or a signal's.
    """

    worker_id: str
    reason: str


class StopNotary(Message, frozen=True):
    """Every front is gone: finish the operations that have arrived, and exit."""


class NotaryReady(Message, frozen=True):
    """Databases and keys are open."""


class FrontDetached(Message, frozen=True):
    """The channel of a front, the deliverer or the exporter ended, and it has no other one: it is dead, or can't
    work."""

    front_id: str


class WorkerBroke(Message, frozen=True):
    """A worker broke the protocol of its channel with the notary. The supervisor kills it."""

    worker_id: str
    reason: str


SupervisorToNotary = (
    StartNotary | AttachFront | AttachDeliverer | AttachEventReader | TieWorker | WorkerEnded | FollowSettings
    | CutLedger | Ping | StopNotary
)  # fmt: skip
NotaryToSupervisor = NotaryReady | FrontDetached | WorkerBroke | SettingsFollowed | LedgerCut | Pong
