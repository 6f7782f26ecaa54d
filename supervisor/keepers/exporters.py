"""The exporter: started if a collector is configured, kept alive, connected to every front and to the notary."""

import secrets
import socket
from collections.abc import Callable

from ipc.messages.event_reading import AttachEventReader
from ipc.messages.exporting import (
    AttachEvents,
    AttachExporter,
    AttachGiver,
    ExporterToSupervisor,
    ReplaceExporter,
    StartExporter,
)
from ipc.messages.message import Message
from ipc.process.roles import EXPORTER
from ipc.protocols.exporter import EXPORTER_TO_SUPERVISOR
from supervisor.children.children import Child
from supervisor.children.fd_passing import handing_over
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.notaries import NotaryKeeper
from supervisor.keepers.side_processes import SideProcessKeeper
from supervisor.logs import log
from supervisor.state import SupervisorState


class ExporterKeeper(SideProcessKeeper):
    """Holds one exporter alive while there is a collector."""

    role, hears, table = EXPORTER, ExporterToSupervisor, EXPORTER_TO_SUPERVISOR
    ready_line = "exporter is ready"

    def __init__(self, state: SupervisorState, notary: NotaryKeeper, fronts: Callable[[], list[FrontLife]]) -> None:
        """`fronts()` are those that live at the moment."""
        super().__init__(state, fronts)
        self._notary = notary
        self._id = ""

    @property
    def is_wanted(self) -> bool:
        """There is a collector."""
        return self._state.settings.telemetry.otlp.endpoint is not None

    def program(self) -> tuple[str, ...]:
        """See SideProcessKeeper."""
        return self._state.programs.exporter

    def first_message(self) -> Message:
        """See SideProcessKeeper."""
        settings = self._state.settings
        return StartExporter(settings.telemetry.otlp, settings.walls, settings.version, settings.guarded)

    def tying(self, front_id: str, pid: int) -> tuple[Message, Message]:
        """See SideProcessKeeper."""
        return AttachGiver(front_id), AttachExporter(pid)

    def attach_notary(self) -> None:
        """Tie it to the notary of now; without one nothing happens, since the next one is tied to it. Raises
        OSError."""
        if not self._is_ready or self._control is None or self._notary.pid is None:
            return
        self._id = f"{EXPORTER}-{secrets.token_hex(4)}"
        ours, theirs = socket.socketpair()
        self._notary.tell(AttachEventReader(self._id), (theirs.detach(),))
        self._control.post(AttachEvents(), (ours.detach(),))

    def child_of(self, exporter_id: str) -> Child | None:
        """The process with this id; None for an earlier process, also while its successor starts, which has no id
        yet."""
        return self._child if self._is_ready and exporter_id == self._id else None

    def _hear(self, message: Message) -> None:
        super()._hear(message)
        assert self._child is not None
        with handing_over(self._child):
            self.attach_notary()

    def replace(self, message: ReplaceExporter) -> None:
        """A front is done with this process."""
        if self.kill(message.pid):
            log.warning("exporter is replaced", pid=message.pid, reason=message.reason)
