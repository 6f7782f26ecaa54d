"""A notary without a database: it reports that it is ready, keeps the channels of fronts, and exits on request.

`fake-notary.json` in the state directory: `exit_at_start`, an exit code; `never_ready` and `never_stops`; `detaches`,
the number of fronts that it reports as detached as soon as they are attached, and `detaches_deliverer`, the first
deliverer likewise; `never_follows`; `cuts_at_once`, the
number of questions to cut the ledger that it waits for before it answers them, each with the number it was asked to cut
at. Told to stop, it writes `notary-stopped.json` with the number of fronts whose channels are still open; told of
settings, the operators' names to `notary-follows.json`.
"""

import contextlib
import json
import os
import select
import signal
import socket
from pathlib import Path

from setproctitle import setproctitle

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.control import FollowSettings, SettingsFollowed
from ipc.messages.message import Message
from ipc.messages.notarising import (
    AttachDeliverer,
    AttachFront,
    FrontDetached,
    NotaryReady,
    StartNotary,
    StopNotary,
    SupervisorToNotary,
)
from ipc.messages.pinging import Ping, Pong
from ipc.messages.sealing import CutLedger, LedgerCut
from ipc.protocols.notary import SUPERVISOR_TO_NOTARY
from tests.support.child_program import played_child


def is_open(channel: socket.socket) -> bool:
    """Whether the other end is there; a front here never says anything."""
    return not select.select([channel], [], [], 0)[0]


def serve(control: BlockingChannel[Message]) -> None:
    start = control.receive()
    assert isinstance(start, StartNotary)
    folder = Path(start.settings.state_dir)
    file = folder / "fake-notary.json"
    script = json.loads(file.read_text()) if file.exists() else {}
    if "exit_at_start" in script:
        os._exit(script["exit_at_start"])
    if not script.get("never_ready"):
        control.send(NotaryReady())
    fronts: dict[str, socket.socket] = {}
    deliverers: list[socket.socket] = []
    cuts: list[CutLedger] = []
    while True:
        match control.receive():
            case AttachFront(front_id=front_id):
                fronts[front_id] = socket.socket(fileno=control.fds.popleft())
                if len(fronts) <= script.get("detaches", 0):
                    control.send(FrontDetached(front_id))
            case AttachDeliverer(deliverer_id=deliverer_id):
                deliverers.append(socket.socket(fileno=control.fds.popleft()))
                if len(deliverers) == 1 and script.get("detaches_deliverer"):
                    control.send(FrontDetached(deliverer_id))
            case FollowSettings(request_id=request_id, reloadable=reloadable):
                (folder / "notary-follows.json").write_text(json.dumps([one.name for one in reloadable.operators]))
                if not script.get("never_follows"):
                    control.send(SettingsFollowed(request_id))
            case CutLedger(sealed="0") as cut:
                control.send(LedgerCut(cut.request_id, 0))
            case CutLedger() as cut:
                cuts.append(cut)
                if len(cuts) == script["cuts_at_once"]:
                    for asked in cuts:
                        control.send(LedgerCut(asked.request_id, int(asked.sealed)))
                    cuts.clear()
            case Ping():
                control.send(Pong())
            case StopNotary():
                left = sum(is_open(channel) for channel in fronts.values())
                (folder / "notary-stopped.json").write_text(json.dumps({"open_fronts": left}))
                if not script.get("never_stops"):
                    os._exit(0)


def main() -> None:
    control_socket = played_child()
    setproctitle("gateway: notary")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    control: BlockingChannel[Message] = BlockingChannel(
        control_socket, SupervisorToNotary, table=SUPERVISOR_TO_NOTARY,
        cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip
    with contextlib.suppress(ChannelClosed):
        serve(control)
    os._exit(11)


main()
