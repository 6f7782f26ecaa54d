"""Whether a worker has taken the word for its call: as long as it has not, the notary can take the call back."""

import socket

import trio

from tests.support.front_core import Core
from tests.support.worker_desk import until


async def word_taken(core: Core, worker_id: str = "compute-1") -> None:
    """Wait until this worker, which the notary has given a word, has taken it. A call that its front has heard to have
    begun may be one whose worker has not had the processor yet."""
    worker = core.notary_thread._service._executions._workers[worker_id]

    def is_taken() -> bool:
        try:
            worker._others_end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        return False

    await until(is_taken)


async def cut_approval(core: Core, approval_id: str) -> None:
    """Approve a call that hangs, and cut the operator off once its worker has the word."""
    reached = trio.Event()
    core.client.on_begun = reached.set
    async with trio.open_nursery() as nursery:
        nursery.start_soon(core.operate, "POST", f"/v1/approvals/{approval_id}/approve")
        with trio.fail_after(60):
            await reached.wait()
        await word_taken(core)
        nursery.cancel_scope.cancel()
