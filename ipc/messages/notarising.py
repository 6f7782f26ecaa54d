"""Supervisor and notary: settings, channels of fronts handed over, the end."""

from typing import ClassVar

from ipc.messages.message import Message
from ipc.settings import Settings


class StartNotary(Message, frozen=True):
    """First message to the notary."""

    settings: Settings


class AttachFront(Message, frozen=True):
    """A front's channel comes along. A channel of the same front that was there before is closed."""

    FDS: ClassVar[int] = 1
    front_id: str


class StopNotary(Message, frozen=True):
    """Every front is gone: finish what has arrived and leave."""


class NotaryReady(Message, frozen=True):
    """Databases and keys are open."""


class FrontDetached(Message, frozen=True):
    """A front's channel ended and no other one followed: the front is gone, or of no use any more."""

    front_id: str


SupervisorToNotary = StartNotary | AttachFront | StopNotary
NotaryToSupervisor = NotaryReady | FrontDetached
