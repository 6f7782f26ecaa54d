"""Signals: what each one means, received one by one inside the event loop.

TERM and INT drain and stop; a second one of either, while the gateway is leaving already, ends it now. HUP reloads.
USR1 tells in the log of each child. CHLD reaps. Opened before anything is started, so that none is ever answered by
dying in the middle.
"""

import signal
from collections.abc import AsyncIterator, Callable, Mapping

RECEIVED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD)


async def answer_signals(received: AsyncIterator[int], answers: Mapping[signal.Signals, Callable[[], None]]) -> None:
    """Call the answer of each signal of `received`, until cancelled."""
    async for number in received:
        answers[signal.Signals(number)]()
