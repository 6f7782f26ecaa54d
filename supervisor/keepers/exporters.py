"""The exporter of spans: started if a collector is configured, kept alive, connected to every front."""

from ipc.channel.protocol_states import EXPORTER_TO_SUPERVISOR
from ipc.messages.exporting import AttachExporter, AttachGiver, ExporterToSupervisor, ReplaceExporter, StartExporter
from ipc.messages.message import Message
from ipc.process.roles import EXPORTER
from supervisor.keepers.side_processes import SideProcessKeeper
from supervisor.logs import log


class ExporterKeeper(SideProcessKeeper):
    """Holds one exporter alive while there is a collector."""

    role, hears, table = EXPORTER, ExporterToSupervisor, EXPORTER_TO_SUPERVISOR
    ready_line = "exporter is ready"

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

    def replace(self, message: ReplaceExporter) -> None:
        """A front is done with this process."""
        if self.kill(message.pid):
            log.warning("exporter is replaced", pid=message.pid, reason=message.reason)
