"""Trials: the tests of a changed file, each in a process of its own, some at once, on copies of the tree.

Never writes into the checkout. A process here has loaded what the tests need of other people's packages, and forks for
each trial: the child loads ours from its copy, where one file is changed. A trial that takes much longer than the tests
do without a change runs for ever, and is killed with all that it started.
"""

import contextlib
import importlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mutants.changes import Change
from mutants.held import Held, Holder, limit_processor
from mutants.kept import COLLECTION, DEADLINE, SURVIVED
from mutants.lines import Lines, Recorder, function_of

LOADED = ("cryptography.x509", "hypothesis.strategies", "jsonschema", "jsonschema_rs", "jwt", "msgspec", "outcome",
          "prometheus_client", "psutil", "pyrage", "pytest_trio.plugin", "sqlite3", "trio", "trio.testing",
          "unittest.mock", "wasmtime", "yaml", "idna")  # fmt: skip
"""What is loaded before a fork."""
OPTIONS = (
    "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:anyio", "--hypothesis-seed=0",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
"""No test of a room uses the plugins that are left out, which would be loaded anew for each trial; what is loaded
already can't be rewritten, as pytest would with its plugins."""
PATIENCE = 5.0
PATIENCE_SECONDS = 60.0
"""A trial may take so many times as long as without a change, and so much more: the machine may be busy."""
PROCESSOR_SECONDS = 10.0
"""Of the processor each test may use so many times as much as well, and this: what never ends is told apart sooner."""
BASELINE_SECONDS = 1800.0
_NOT_RUN = 70


class NotRun(Exception):
    """Tests were not run for another reason than the change: what pytest said."""


class _Listener:
    """Writes down how long tests took, and which failed, for the process that waits."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        with self._file.open("a") as file:
            file.write(f"{int(report.failed)} {report.duration:.3f} {report.nodeid}\n")


@dataclass(frozen=True)
class Baseline:
    """Of the tests without a change: seconds by file and by function, what failed, and who runs which line."""

    seconds: dict[str, float]
    failed: list[str]
    lines: Lines


@dataclass
class _Running:
    pid: int
    descriptor: int
    deadline: float
    is_held: bool


class Copy:
    """One copy of the tree, in which one trial runs at a time."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.tree = folder / "tree"
        self._tests = folder / "tests"
        self._lines = folder / "lines"
        self._said = folder / "said"
        self._temporary = folder / "t"
        self._running: _Running | None = None
        self._held: Held | None = None
        self._undo: tuple[Path, bytes, os.stat_result] | None = None
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True,
            check=True, timeout=300,
        ).stdout.decode()  # fmt: skip
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.tree / name)
        (self.tree / ".venv").symlink_to(root / ".venv")

    @property
    def descriptor(self) -> int:
        """Readable when the trial has ended."""
        assert self._running is not None
        return self._running.descriptor

    @property
    def deadline(self) -> float:
        assert self._running is not None
        return self._running.deadline

    def begin(
        self, change: Change | None, arguments: list[str], seconds: dict[str, float], watched: Iterable[str] = ()
    ) -> None:  # fmt: skip
        """Run pytest with these arguments, which take so many seconds without a change, on the changed tree; write down
        which tests run which lines of `watched`."""
        source = b""
        if change is not None:
            path = self.tree / change.path
            source = path.read_bytes()
            self._undo = path, source, path.stat()
            path.write_bytes(change.apply(source))
        self._tests.unlink(missing_ok=True)
        usual = [seconds.get(one, 0.0) for one in arguments]
        deadline = time.monotonic() + (sum(usual) * PATIENCE + PATIENCE_SECONDS if change else BASELINE_SECONDS)
        if change is not None and self._held is not None:
            pid = self._held.begin(change, source, arguments, max(1.0, max(usual) * PATIENCE + PROCESSOR_SECONDS))
            if pid is not None:
                self._running = _Running(pid, self._held.connection.fileno(), deadline, is_held=True)
                return
        pid = os.fork()
        if pid == 0:
            os.setsid()
            if change is not None:
                limit_processor(max(1.0, sum(usual) * PATIENCE + PROCESSOR_SECONDS))
            plugins = [Recorder(self.tree, watched, self._lines)] if watched else []
            self._be_a_trial(["-x", *arguments] if change else arguments, plugins, writes=change is None)
        self._running = _Running(pid, os.pidfd_open(pid), deadline, is_held=False)

    def hold(self, tests: list[str]) -> None:
        """Collect these tests once, for all trials to come: see `wait_held`."""
        self.release()
        self._held = Held(self.tree, lambda holder: self._be_a_trial(["-x", *tests], [holder], writes=False))

    def wait_held(self) -> None:
        """Until they are collected. Nothing may be tried before. Raises NotRun."""
        assert self._held is not None
        if not self._held.wait_loaded(BASELINE_SECONDS):
            raise NotRun(self.said())

    def release(self) -> None:
        """Forget what is collected."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _be_a_trial(self, arguments: list[str], plugins: list[Recorder] | list[Holder], *, writes: bool) -> None:
        code = _NOT_RUN
        try:
            said = os.open(self._said, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.chdir(self.tree)
            # What is compiled of an unchanged tree is kept, of a changed one nothing.
            sys.dont_write_bytecode = not writes
            os.environ |= {} if writes else {"PYTHONDONTWRITEBYTECODE": "1"}
            sys.path[:] = [str(self.tree), *(one for one in sys.path if one and not _is_ours(one))]
            options = [*OPTIONS, f"--basetemp={self._temporary}"]
            code = int(pytest.main([*options, *arguments], plugins=[_Listener(self._tests), *plugins]))
        except SystemExit:
            code = pytest.ExitCode.USAGE_ERROR  # a module that a conftest.py loads ends the process
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def end(self, *, is_late: bool) -> str:
        """What found the change; see Outcome.by."""
        assert self._running is not None
        running, self._running = self._running, None
        with contextlib.suppress(ProcessLookupError):  # and whatever it started in its session, and left behind
            os.killpg(running.pid, signal.SIGKILL)
        if running.is_held:
            assert self._held is not None
            status = self._held.status()
        else:
            _, status = os.waitpid(running.pid, 0)
            os.close(running.descriptor)
        is_changed = self._undo is not None
        if self._undo is not None:
            path, source, times = self._undo
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            self._undo = None
        if is_late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
            return DEADLINE
        code = os.waitstatus_to_exitcode(status)
        if is_changed and code == pytest.ExitCode.USAGE_ERROR:
            return COLLECTION  # what was collected without the change can't be with it
        # What a thread raises after the last test ends pytest itself: that is a find.
        is_unrun = code == _NOT_RUN and not self._heard()
        if is_unrun or code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise NotRun(self.said())
        if code == 0:
            return SURVIVED
        failed = self.failed()
        return failed[0] if failed else COLLECTION

    def said(self) -> str:
        """The end of what pytest said in the last trial."""
        return self._said.read_text()[-2000:]

    def failed(self) -> list[str]:
        """Ids of tests that failed in the last trial."""
        return [test for has_failed, _, test in self._heard() if has_failed == "1"]

    def seconds(self) -> dict[str, float]:
        """How long the tests of each file, and of each function, took in the last trial."""
        durations: defaultdict[str, float] = defaultdict(float)
        for _, seconds, test in self._heard():
            durations[test.partition("::")[0]] += float(seconds)
            durations[function_of(test)] += float(seconds)
        return durations

    def lines(self) -> Lines:
        """What was written down of watched files."""
        return Lines(self._lines)

    def _heard(self) -> list[list[str]]:
        lines = self._tests.read_text().splitlines() if self._tests.is_file() else []
        return [line.split(" ", 2) for line in lines]


def _is_ours(folder: str) -> bool:
    return Path(folder).resolve() == Path(__file__).resolve().parents[1]


def _hopeful_first(parts: list[list[str]], hope: str | None) -> list[list[str]]:
    """The same tests, the one that found the last change of the same source before all others."""
    if not any(hope in part for part in parts):
        return parts
    assert hope is not None
    options = [argument for argument in parts[0] if argument.startswith("-")]
    others = [[one for one in part if one != hope] for part in parts]
    if hope in parts[0]:
        return [[hope, *others[0]], *others[1:]]
    return [[hope, *options], *(part for part in others if part != options)]


class Trials:
    """Runs trials, as many at once as there are copies."""

    def __init__(self, copies: list[Copy]) -> None:
        self._copies = copies

    def baseline(self, tests: tuple[str, ...], watched: Iterable[str] = ()) -> Baseline:
        """Run tests of an unchanged tree in every copy at once; of `watched` files it is told who runs which line.
        They are collected then, for the trials to come."""
        for copy in self._copies:
            copy.begin(None, list(tests), {}, watched)
        failed: dict[str, None] = {}
        for copy in self._copies:
            select.select([copy.descriptor], [], [], BASELINE_SECONDS)
            if copy.end(is_late=False) == COLLECTION:
                raise NotRun(copy.said())
            failed |= dict.fromkeys(copy.failed())
        for copy in self._copies:
            copy.hold(list(tests))
        for copy in self._copies:
            copy.wait_held()
        first = self._copies[0]
        seconds = {name: max(copy.seconds()[name] for copy in self._copies) for name in first.seconds()}
        return Baseline(seconds, list(failed), first.lines())

    def run(
        self, changes: list[Change], tests: dict[str, list[list[str]]], seconds: dict[str, float]
    ) -> Iterator[tuple[Change, str]]:  # fmt: skip
        """Each change, and what found it, as they end. `tests` are arguments of pytest by a change's name, in parts:
        the next one is run when nothing was found by the one before; a change without any has survived. `seconds` is
        how long each file or function takes without a change."""
        for change in changes:
            if not tests[change.name]:
                yield change, SURVIVED
        waiting: list[tuple[Change, list[list[str]] | None]] = [
            (change, None) for change in reversed(changes) if tests[change.name]
        ]
        free, running = list(self._copies), dict[Copy, tuple[Change, list[list[str]]]]()
        last: dict[str, str] = {}
        while waiting or running:
            while waiting and free:
                copy, (change, left) = free.pop(), waiting.pop()
                first, *rest = left or _hopeful_first(tests[change.name], last.get(change.path))
                copy.begin(change, first, seconds)
                running[copy] = change, rest
            patience = min(copy.deadline for copy in running) - time.monotonic()
            ready, _, _ = select.select([copy.descriptor for copy in running], [], [], max(0.0, patience))
            for copy, (change, rest) in list(running.items()):
                if (has_ended := copy.descriptor in ready) or copy.deadline <= time.monotonic():
                    del running[copy]
                    free.append(copy)
                    by = copy.end(is_late=not has_ended)
                    if by == SURVIVED and rest:
                        waiting.append((change, rest))
                    else:
                        last[change.path] = function_of(by)
                        yield change, by


@contextlib.contextmanager
def trials(root: Path, at_once: int) -> Iterator[Trials]:
    """So many copies, in memory where there is some; gone afterwards."""
    for name in LOADED:
        importlib.import_module(name)
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(prefix="trial", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        copies = []
        for number in range(at_once):
            place = Path(folder) / str(number)
            place.mkdir()
            copies.append(Copy(root, place))
        made = Trials(copies)
        try:
            yield made
        finally:
            for copy in copies:
                if copy._running is not None:
                    copy.end(is_late=True)
                copy.release()
