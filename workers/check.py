"""The module checker: `python -m workers.check --channel-fd N --parent PID [--cache DIR]`, for `gateway check`.

Looks at modules as the template does, by the same code: digest, imports, compilation, contract. Guarantees that nothing
is mapped, run or kept: compilers are forked and thrown away, and the folder of compiled modules is only looked into,
for those that a gateway has compiled and mapped already.
"""

import argparse
import os
import select
import signal
import socket
import sys
import time
from typing import Any

import setproctitle
from wasmtime import Engine

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded, ModuleVerdict
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, refuse_core_dumps
from ipc.process.process_speed import leave
from ipc.protocols.checking import TO_MODULE_CHECKER
from ipc.walls.found import missing_walls
from ipc.walls.given import Given
from workers.cache import Cache, NotTrusted
from workers.compile import Compilation, NotCompiled, start_compilation
from workers.loading import MAX_COMPILERS, ModuleRefused, examine
from workers.runtime.modules import make_engine


class ModuleChecker:
    """Gives a verdict on each module, one after the other."""

    def __init__(self, engine: Engine, cache: Cache | None) -> None:
        self._engine = engine
        self._walls = Given(missing_walls(None))
        self._cache = cache
        self._known: dict[str, str | None] = {}
        """Digest -> what is wrong with the code, None for nothing."""
        self._compiling: dict[str, Compilation] = {}

    def verdicts(self, files: tuple[ModuleFile, ...]) -> tuple[ModuleVerdict, ...]:
        """The verdicts of a template on these files, in their order."""
        begun: list[ModuleVerdict | tuple[str, str]] = [self._begin(file) for file in files]
        while self._compiling:
            self._collect()
        return tuple(self._verdict(*one) if isinstance(one, tuple) else one for one in begun)

    def _begin(self, file: ModuleFile) -> ModuleVerdict | tuple[str, str]:
        """The verdict, or (reference, digest) of a module whose code is being looked at."""
        try:
            digest, data = examine(file)
        except ModuleRefused as refused:
            return ModuleVerdict(file.reference, refused.verdict, refused.digest, str(refused))
        if digest in self._known or digest in self._compiling:
            return file.reference, digest
        if self._is_cached(digest):
            self._known[digest] = None
            return file.reference, digest
        while len(self._compiling) >= MAX_COMPILERS:
            self._collect()
        try:
            self._compiling[digest] = start_compilation(self._engine, None, digest, data, self._walls)
        except OSError as error:
            self._known[digest] = f"no compiler could be started: {os.strerror(error.errno or 0)}"
        return file.reference, digest

    def _is_cached(self, digest: str) -> bool:
        """True if a gateway has compiled and mapped it; what a template would not map is compiled here too."""
        try:
            return self._cache is not None and self._cache.read(digest) is not None
        except NotTrusted:
            return False

    def _verdict(self, reference: str, digest: str) -> ModuleVerdict:
        problem = self._known[digest]
        return ModuleVerdict(reference, "ok" if problem is None else "refused", digest, problem or "")

    def _collect(self) -> None:
        """Wait for a compiler to end or to run out of time, and take what it said."""
        waiting = select.poll()
        for compilation in self._compiling.values():
            waiting.register(compilation.child.handle, select.POLLIN)
        first = min(compilation.deadline for compilation in self._compiling.values())
        waiting.poll(max(0.0, first - time.monotonic()) * 1000)
        for digest, compilation in list(self._compiling.items()):
            if compilation.child.has_ended() or time.monotonic() >= compilation.deadline:
                del self._compiling[digest]
                try:
                    compilation.finish()
                    self._known[digest] = None
                except NotCompiled as error:
                    self._known[digest] = str(error)


def main(arguments: list[str] | None = None) -> int:
    """Answer until the channel closes; returns an exit code."""
    parser = argparse.ArgumentParser(prog="workers.check", allow_abbrev=False)
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--cache", help="folder of compiled modules, looked into only")
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    refuse_core_dumps()
    setproctitle.setproctitle("gateway: module checker")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cache = Cache(options.cache, is_for_looking=True) if options.cache else None
    checker = ModuleChecker(make_engine(), cache)
    with socket.socket(fileno=options.channel_fd) as sock:
        sock.setblocking(True)
        os.set_inheritable(sock.fileno(), False)
        union: Any = LoadModules
        channel: BlockingChannel[LoadModules] = BlockingChannel(
            sock, union, table=TO_MODULE_CHECKER, cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME
        )
        try:
            while True:
                asked = channel.receive()
                channel.send(ModulesLoaded(asked.request_id, 0, checker.verdicts(asked.modules)))
        except (FrameError, ProtocolError) as error:
            print(f"module checker: the front broke the protocol: {error}", file=sys.stderr)
            return Exit.PROTOCOL
        except (ChannelClosed, ConnectionError):
            return Exit.ORPHANED


if __name__ == "__main__":
    leave(main())
