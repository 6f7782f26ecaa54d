"""The exporter and the notary: the one operation that it may ask, and the answers.

SECURITY: it talks to a collector outside. It reads audit events, which have commitments and no values; it reaches no
receipt, no hold and no key, and changes nothing.
"""

from typing import ClassVar

from ipc.messages.delivering import Welcome
from ipc.messages.message import Message
from ipc.messages.notary_frames import Answered
from ipc.operations.askable import AnyOfExporter


class AskedByExporter(Message, frozen=True):
    """One operation and its number."""

    number: int
    operation: AnyOfExporter


class AttachEventReader(Message, frozen=True):
    """From the supervisor to the notary: the channel of the exporter comes along, which follows the one before."""

    FDS: ClassVar[int] = 1
    exporter_id: str


ExporterToNotary = AskedByExporter
NotaryToExporter = Welcome | Answered
