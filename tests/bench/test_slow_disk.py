"""The slow disk reaches the programs that the supervisor starts, and waits at every flush."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import fields

from bench.slow_disk import NoCompilerError, built, preloaded
from supervisor.programs import INTERPRETER, Programs, child_environment

DELAY_US = 3000
FLUSH = Programs(front=("tests.bench.programs.flush",))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return built(tmp_path_factory.mktemp("shim"))
    except NoCompilerError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def test_every_flush_of_a_program_of_the_supervisors_waits_and_fails_as_before(library: Path, tmp_path: Path) -> None:
    programs = preloaded(FLUSH, library, DELAY_US)
    done = subprocess.run(
        [*INTERPRETER, *programs.front, str(tmp_path / "file")], env=child_environment({}), capture_output=True,
        timeout=60, check=True,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert report["counted"] == 4
    assert report["taken"] >= 3 * DELAY_US / 1e6
    assert report["failed"] == "Bad file descriptor"


def test_every_kind_of_child_is_started_behind_it(library: Path) -> None:
    plain, slow = Programs(), preloaded(Programs(), library, DELAY_US)
    kinds = [kind.name for kind in fields(Programs) if isinstance(getattr(plain, kind.name), tuple)]
    assert {"front", "notary"} <= set(kinds)
    for kind in kinds:
        own = getattr(plain, kind)
        assert getattr(slow, kind)[-len(own) :] == own
        assert str(library) in getattr(slow, kind)


def test_the_process_stays_the_one_that_the_supervisor_started(library: Path, tmp_path: Path) -> None:
    command = [*INTERPRETER, *preloaded(FLUSH, library, 0).front, str(tmp_path / "file")]
    process = subprocess.Popen(command, env=child_environment({}), stdout=subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    assert json.loads(said)["pid"] == process.pid
