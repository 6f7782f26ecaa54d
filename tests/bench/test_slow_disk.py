"""The slow disk reaches the programs that the supervisor starts, and waits at every flush."""

import json
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from bench.slow_disk import NoCompilerError, built, preloaded
from supervisor.programs import INTERPRETER, Programs, child_environment

DELAY_US = 3000
FLUSHES = """
import ctypes, json, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"x")
started = time.monotonic()
os.fsync(file)
os.fdatasync(file)
ctypes.CDLL(None).sync_file_range(file, ctypes.c_longlong(0), ctypes.c_longlong(0), 7)
taken = time.monotonic() - started
try:
    os.fsync(12345)
except OSError as error:
    failed = error.strerror
counted = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "slow_disk_flushes").value
print(json.dumps({"taken": taken, "counted": counted, "failed": failed}))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return built(tmp_path_factory.mktemp("shim"))
    except NoCompilerError as error:
        pytest.skip(str(error))


def test_every_flush_of_a_program_of_the_supervisors_waits_and_fails_as_before(library: Path, tmp_path: Path) -> None:
    programs = preloaded(Programs(front=("-c", FLUSHES)), library, DELAY_US)
    done = subprocess.run(
        [*INTERPRETER, *programs.front, str(tmp_path / "file")], env=child_environment({}), capture_output=True,
        timeout=60, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["counted"] == 4
    assert found["taken"] >= 3 * DELAY_US / 1e6
    assert found["failed"] == "Bad file descriptor"


def test_every_kind_of_child_is_started_behind_it(library: Path) -> None:
    plain, slow = Programs(), preloaded(Programs(), library, DELAY_US)
    for kind in fields(Programs):
        own = getattr(plain, kind.name)
        assert getattr(slow, kind.name)[-len(own) :] == own
        assert str(library) in getattr(slow, kind.name)


def test_the_process_stays_the_one_that_the_supervisor_started(library: Path) -> None:
    programs = preloaded(Programs(front=("-c", "import os; print(os.getpid(), os.getppid(), end=' ')")), library, 0)
    process = subprocess.Popen([*INTERPRETER, *programs.front], env=child_environment({}), stdout=subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    pid, _ = said.split()
    assert int(pid) == process.pid
