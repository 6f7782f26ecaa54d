"""Tests of a room, collected once in a process that forks for each trial: nothing is loaded anew but what it changes.

To load and collect takes longer than most trials. A change that has to be in the modules as they are loaded (see
mutants/patching.py) is refused, and tried without this.
"""

import gc
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from math import ceil
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from mutants import warm
from mutants.changes import Change
from mutants.lines import function_of
from mutants.patching import Loaded

DESELECT = "--deselect="
LOADED = "loaded"


class Held:
    """The process, as seen from the one that asks: one trial at a time. `run` is called in it with the plugin that
    pytest must have, after `Loaded.profile` was set, and does not return."""

    def __init__(self, tree: Path, run: Callable[["Holder"], None]) -> None:
        self.connection, inner = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.connection.close()
            run(Holder(tree, inner))
        inner.close()

    def wait_loaded(self, seconds: float) -> bool:
        """Until everything is loaded: what is changed in the tree before that would be loaded with it, and stay for
        every trial. False when it ended instead, or took longer."""
        try:
            return self.connection.poll(seconds) and self.connection.recv() == LOADED
        except (EOFError, OSError):
            return False

    def begin(self, change: Change, source: bytes, arguments: list[str], seconds: float) -> int | None:
        """Fork a trial that may use so many seconds of the processor for each test: its process, or None where the
        change has to be there before modules are loaded."""
        self.connection.send((change, source, arguments, seconds))
        pid: int | None = self.connection.recv()
        return pid

    def status(self) -> int:
        """Of the trial that has ended, as of waitpid()."""
        status: int = self.connection.recv()
        return status

    def close(self) -> None:
        """End it. Its end of the pipe may be open in others that were forked since: it is not left to find out."""
        self.connection.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Holder:
    """The plugin of pytest in that process: serves in place of the loop that runs tests, and goes on to run the chosen
    ones in each fork."""

    def __init__(self, tree: Path, connection: Connection) -> None:
        self._connection = connection
        self._loaded = Loaded(tree)
        self._seconds = 0.0
        sys.setprofile(self._loaded.profile)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """A test begins."""
        limit_processor(time.process_time() + self._seconds)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        warm.before_trials()
        sys.setprofile(None)
        tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            for name in (item.nodeid.partition("::")[0], function_of(item.nodeid)):
                tests[name].append(item)
        self._loaded.find_functions()
        gc.collect()
        gc.freeze()
        self._connection.send(LOADED)
        while True:
            try:
                change, source, arguments, seconds = self._connection.recv()
            except EOFError:
                os._exit(0)
            go, gone = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.setsid()
                self._seconds = seconds
                session.items = _chosen(tests, arguments)
                session.testscollected = len(session.items)
                has_changed = self._loaded.exchange(change, source)
                os.write(gone, b"+" if has_changed else b"-")
                if not has_changed:
                    os._exit(0)
                self._connection.close()
                warm.in_trial()
                return None
            os.close(gone)
            can_be_tried = os.read(go, 1) == b"+"
            os.close(go)
            self._connection.send(pid if can_be_tried else None)
            _, status = os.waitpid(pid, 0)
            if can_be_tried:
                self._connection.send(status)


def limit_processor(seconds: float) -> None:
    """End this process, and each that it starts, when it has used so much: it runs for ever, busy as others may be."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(seconds), most))


def _chosen(tests: dict[str, list[pytest.Item]], arguments: list[str]) -> list[pytest.Item]:
    """What these arguments name, in their order, without what they leave out."""
    left_out = {one.removeprefix(DESELECT) for one in arguments if one.startswith(DESELECT)}
    named = dict.fromkeys(item for one in arguments for item in tests.get(one, ()))
    return [item for item in named if item.nodeid not in left_out]
