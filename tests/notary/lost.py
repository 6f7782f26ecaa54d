"""Calls whose end is never reported: their front and their worker are both gone."""

import itertools
from typing import Any

from ipc.caps import CapUse
from ipc.evidence.kept_values import KeptValues
from notary.units.transaction import ENDED_SECONDS
from tests.notary.running import Running
from tests.notary.samples import call_event, make_open
from tests.support.logs import capture_logs
from tests.support.supervised import wait_until

OVER = 3600.0 + ENDED_SECONDS
"""Seconds after which no process reports on any call."""
_numbers = itertools.count(1)


def lost_call(
    notary: Running, *, event: dict[str, Any] | None = None, caps: tuple[CapUse, ...] = (),
    kept: KeptValues | None = None, **terms: Any
) -> str:  # fmt: skip
    """The id of its intent; `event` are fields of its event."""
    front = notary.attach(f"leaves-{next(_numbers)}")
    call = make_open(event=call_event(**(event or {})), terms=terms, caps=caps, kept=kept)
    front.begin(call)
    worker = notary.workers.of(call.intent_id)
    worker.word()
    with capture_logs() as lines:
        front.close()
        wait_until(lambda: [line for line in lines if line["event"] == "a front's channel ended"])
        notary.workers.end(worker)
        wait_until(lambda: [line for line in lines if line.get("intent_id") == call.intent_id])
    return call.intent_id
