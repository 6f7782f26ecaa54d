"""A worker: what a child of the template becomes. Serves one call at a time to one front.

Owns one channel and nothing else: no listening socket, no store, no signing key. Order: let go of everything
inherited, build the walls, say so, learn the public keys, then calls. Leaves with a code of `ipc.exits`.
"""

import os
import socket
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import setproctitle
from wasmtime import Engine

from ipc import messages as m
from ipc.blocking import BlockingChannel, ChannelClosed
from ipc.exits import Exit
from ipc.framing import FrameError
from ipc.limits import MAX_CALL_FRAME, MAX_RESULT_FRAME
from ipc.sessions import FRONT_TO_WORKER, ProtocolError
from workers.forking import settle
from workers.grant import GrantVerifier
from workers.host.resolver import Resolver
from workers.log import write_failure, write_line
from workers.runtime.call import Outside, Runner, broken_result
from workers.runtime.modules import Module
from workers.runtime.ticker import EpochTicker
from workers.sandbox.profiles import Profile, SandboxRefused, enter, prepare

SEND_SECONDS = 30
"""A front that does not take a result for this long will not take it at all."""

_Channel = BlockingChannel[m.Welcome | m.GrantKeys | m.Call | m.Retire]


@dataclass(frozen=True)
class Birth:
    """What a child starts with: its name, its channel's descriptor, and what the template had prepared."""

    worker_id: str
    profile: str
    title: str
    descriptor: int
    recycle_after_calls: int
    engine: Engine
    modules: Mapping[str, Module]
    tls: ssl.SSLContext


def live(birth: Birth) -> Exit:
    """The whole life of a worker, from the fork to its exit code."""
    settle({birth.descriptor})
    setproctitle.setproctitle(birth.title)
    channel = _open_channel(birth.descriptor)
    try:
        profile = prepare(birth.profile)
        ticker = EpochTicker(birth.engine)
        ticker.start()
        outside = None
        if "http" in profile.interfaces:
            outside = Outside(Resolver(), birth.tls)
            outside.resolver.start()
        enter(profile)
        channel.send(m.WorkerReady(birth.worker_id, os.getpid(), birth.profile))
        return _serve(birth, channel, profile, ticker, outside)
    except SandboxRefused as error:
        write_line("error", "the operating system refused a wall", worker_id=birth.worker_id, reason=str(error))
        return Exit.SANDBOX
    except (FrameError, ProtocolError) as error:
        write_line("error", "the front broke the protocol", worker_id=birth.worker_id, reason=str(error))
        return Exit.PROTOCOL
    except (ChannelClosed, OSError):
        return Exit.ORPHANED
    except Exception as error:
        write_failure("worker failed", error, worker_id=birth.worker_id)
        return Exit.FAILED


def _serve(
    birth: Birth, channel: _Channel, profile: Profile, ticker: EpochTicker, outside: Outside | None
) -> Exit:  # fmt: skip
    welcome = channel.receive()
    assert isinstance(welcome, m.Welcome), "the session table lets nothing else come first"
    runner = Runner(birth.engine, birth.modules, profile, _verifier(welcome), ticker, outside)
    calls = 0
    while True:
        message = channel.receive()
        if isinstance(message, m.Retire):
            return Exit.RECYCLED
        if isinstance(message, m.GrantKeys):
            runner.grants = _verifier(message)
            continue
        assert isinstance(message, m.Call), "the session table lets nothing else come now"
        calls += 1
        result = runner.run(message)
        is_stuck = outside is not None and outside.resolver.is_stuck
        is_last = calls >= birth.recycle_after_calls or is_stuck
        _send_result(channel, message, result, is_last=is_last)
        # SECURITY: the call and its secrets are not kept while the worker waits for the next one.
        del message, result
        if is_last:
            return Exit.RECYCLED


def _verifier(message: m.Welcome | m.GrantKeys) -> GrantVerifier:
    try:
        return GrantVerifier(message.grant_jwks)
    except ValueError as error:
        raise ProtocolError(f"{type(message).__name__} with {error}") from None


def _send_result(channel: _Channel, call: m.Call, result: m.Result, *, is_last: bool) -> None:
    if is_last:
        result = msgspec.structs.replace(result, retiring=True)
    try:
        channel.send(result)
    except FrameError:
        smaller = broken_result(call, result.observations)
        channel.send(msgspec.structs.replace(smaller, retiring=True) if is_last else smaller)


def _open_channel(descriptor: int) -> _Channel:
    stream = socket.socket(fileno=descriptor)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
    return BlockingChannel(
        stream, m.FrontToWorker, table=FRONT_TO_WORKER, start="new", cap_in=MAX_CALL_FRAME, cap_out=MAX_RESULT_FRAME
    )
