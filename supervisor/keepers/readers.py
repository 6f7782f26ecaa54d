"""The reader of one front: started when the front asks for one, gone after its answer, killed at its deadline.

Guarantees that a front has one reader at a time: what is asked while one is at work is started once that has ended,
and of several such requests the last one alone.
"""

import trio

from ipc.limits import READER_SECONDS
from ipc.messages.control import AttachReader, NeedReader
from ipc.process.exits import Exit
from supervisor.children.backoff import reason_of
from supervisor.keepers.policies import Post
from supervisor.logs import log
from supervisor.settings.sections.ledgers import ledger_arguments
from supervisor.state import SupervisorState


class ReaderKeeper:
    """Starts readers for one front."""

    def __init__(self, state: SupervisorState, seconds: float = READER_SECONDS) -> None:
        """`seconds` is how long one may live."""
        self._state = state
        self._seconds = seconds
        self._wanted: NeedReader | None = None
        self._asked = trio.Event()

    def need(self, message: NeedReader) -> None:
        """The front waits for one."""
        self._wanted = message
        self._asked.set()

    async def run(self, post: Post) -> None:
        """Start, attach through `post`, wait for the end, again. Cancelled, the process is killed."""
        while True:
            await self._asked.wait()
            wanted, self._wanted, self._asked = self._wanted, None, trio.Event()
            if wanted is not None:
                await self._live(wanted, post)

    async def _live(self, wanted: NeedReader, post: Post) -> None:
        settings = self._state.settings
        program = (*self._state.programs.reader, *ledger_arguments(settings), "--walls", str(settings.walls))
        child, pair = self._state.children.start("reader", program, "channel-fd")
        if pair is not None:
            with pair[0]:
                if child.status is None:
                    post(AttachReader(wanted.request_id, child.pid), (pair[0].detach(),))
        try:
            with trio.move_on_after(self._seconds) as deadline:
                await child.wait()
        finally:
            child.kill()
        status = await child.wait()
        if deadline.cancelled_caught:
            log.error(f"reader is killed: it had no answer within {self._seconds:g} s", pid=child.pid)
        elif status not in (Exit.OK, Exit.ORPHANED):  # a front may stop listening
            log.warning("reader ended without an answer", reason=reason_of(status), pid=child.pid)
