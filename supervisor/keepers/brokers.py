"""The broker: started once a front needs one, kept alive, connected to every front.

A reload that changes `[egress]` replaces it, since it gets its networks at its start. Its tokens are in memory alone:
its successor fetches new ones, and the questions that it had not answered fail.
"""

from collections.abc import Callable

from ipc.messages.brokering import AttachAsker, AttachBroker, BrokerToSupervisor, ReplaceBroker, StartBroker
from ipc.messages.message import Message
from ipc.network.own_servers import own_servers
from ipc.process.roles import BROKER
from ipc.protocols.broker import BROKER_TO_SUPERVISOR
from ipc.settings import EgressSettings
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.network_files import NetworkFiles
from supervisor.keepers.side_processes import SideProcessKeeper
from supervisor.logs import log
from supervisor.state import SupervisorState


class BrokerKeeper(SideProcessKeeper):
    """Holds one broker alive once it is needed."""

    role, hears, table = BROKER, BrokerToSupervisor, BROKER_TO_SUPERVISOR
    ready_line = "broker is ready"

    def __init__(self, state: SupervisorState, fronts: Callable[[], list[FrontLife]]) -> None:
        """See SideProcessKeeper."""
        super().__init__(state, fronts)
        self._is_needed = False
        self._egress = EgressSettings()
        """The settings that it was started with."""
        self._files = NetworkFiles(())
        """The files of TLS that it has read."""

    @property
    def is_wanted(self) -> bool:
        """A front has an action that needs it."""
        return self._is_needed

    def need(self) -> None:
        """A front has an action that needs it."""
        self._is_needed = True
        self._state.condition.notify_all()

    def program(self) -> tuple[str, ...]:
        """See SideProcessKeeper."""
        return self._state.programs.broker

    def first_message(self) -> Message:
        """See SideProcessKeeper."""
        settings = self._state.settings
        self._egress = settings.egress
        self._files.update(self._egress.networks)
        return StartBroker(self._egress, settings.walls, own_servers(settings))

    def tying(self, front_id: str, pid: int) -> tuple[Message, Message]:
        """See SideProcessKeeper."""
        return AttachAsker(front_id), AttachBroker(pid)

    def replace(self, message: ReplaceBroker) -> None:
        """A front is done with this process."""
        if self.kill(message.pid):
            log.warning("broker is replaced", pid=message.pid, reason=message.reason)

    async def follow(self) -> None:
        """A reload is in force: returns once no process has other networks than it says."""
        egress = self._state.settings.egress
        has_other_files = self._files.update(egress.networks)
        if has_other_files or self._egress != egress:
            await self._end()
