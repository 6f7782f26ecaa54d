"""The checking front: `python -m frontend.configuration.check --control-fd N --parent PID`, for `gateway check`.

Gets a list of files to check, and a policy process and a module checker of its own. Reports each problem in a message,
and ends. It serves no requests, opens no store and writes no file; it connects to backends only on request.
"""

import argparse
import socket
from typing import Any

import trio
from setproctitle import setproctitle

from frontend.configuration.backend_checks import look_at_backends
from frontend.configuration.inspection import (
    look_at_actions,
    look_at_data,
    look_at_pointers,
    look_at_policy,
    look_at_webhooks,
    module_channel,
)
from frontend.configuration.issuer_checks import look_at_issuers
from frontend.configuration.upstream_checks import look_at_upstreams
from frontend.policy.embedded import EmbeddedPolicy
from frontend.telemetry.logs import configure_logs, log
from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.fds import take
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.checking import MAX_PROBLEMS, CheckFiles, FilesChecked, FoundProblem
from ipc.process.child import inherited
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, refuse_core_dumps
from ipc.process.process_speed import leave
from ipc.protocols.checking import SUPERVISOR_TO_CHECKER


def _no_replacement(_pid: int, _reason: str) -> None:
    """A policy that costs the process has said enough."""


async def look(
    request: CheckFiles, policy: socket.socket, modules: socket.socket
) -> tuple[list[FoundProblem], FilesChecked]:
    """Everything that `request` asks for."""
    told: list[FoundProblem] = []
    actions, version, not_remembered = 0, "", None
    if "webhooks" in request.parts:
        told += look_at_webhooks(request.settings)
    if "actions" in request.parts:
        channel = module_channel(modules)
        more, actions = await look_at_actions(request.settings, channel, with_secrets="secrets" in request.parts)
        told += more
    if "connect" in request.parts:
        told += await look_at_backends(request.settings)
        told += await look_at_issuers(request.settings)
        told += await look_at_upstreams(request.settings) if "actions" in request.parts else []
    if "policy" in request.parts and request.settings.opa_url is not None:
        more, version = look_at_data(request.settings.policy_dir)
        told += more
    elif "policy" in request.parts:
        engine = EmbeddedPolicy(_no_replacement)
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.run)
            engine.attach(policy, 0)
            more, version, not_remembered = await look_at_policy(request.settings.policy_dir, engine)
            told += more
            nursery.cancel_scope.cancel()
    if "pointers" in request.parts:
        told += look_at_pointers(request.settings, has_looked="actions" in request.parts)
    return told, FilesChecked(actions, version, not_remembered)


def serve(control: socket.socket) -> Exit:
    """Answer the one request."""
    union: Any = CheckFiles
    channel: BlockingChannel[CheckFiles] = BlockingChannel(
        control, union, table=SUPERVISOR_TO_CHECKER, cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME
    )
    request = channel.receive()
    policy, modules = (socket.socket(fileno=one) for one in take(channel.fds, 2))
    with policy, modules:
        problems, checked = trio.run(look, request, policy, modules)
    for problem in problems[:MAX_PROBLEMS]:
        channel.send(problem)
    channel.send(checked)
    return Exit.OK


def main() -> int:
    """Entry point; returns an exit code."""
    parser = argparse.ArgumentParser(prog="frontend.configuration.check", allow_abbrev=False)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    die_with_parent(options.parent)
    refuse_core_dumps()
    setproctitle("gateway: check")
    configure_logs("check")
    try:
        with inherited(options.control_fd) as control:
            return serve(control)
    except (ChannelClosed, BrokenPipeError, ConnectionResetError):
        return Exit.ORPHANED
    except (FrameError, ProtocolError) as error:
        log.error("the supervisor broke the protocol", cause=str(error))
        return Exit.PROTOCOL
    except Exception:
        log.exception("the check ended by an error")
        return Exit.FAILED


if __name__ == "__main__":
    leave(main())
