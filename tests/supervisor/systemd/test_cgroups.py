"""Limits of workers by cgroups, on folders that look like those of a kernel: no test machine delegates one."""

import os
from pathlib import Path

import pytest

from ipc.limits import HTTP_WORKER_THREADS
from supervisor.systemd.cgroups import MEMORY_BYTES, WorkerLimits, delegated_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cgroup of the second version, with ourselves in it."""
    own = tmp_path / "system.slice" / "gateway.service"
    own.mkdir(parents=True)
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    (own / "cgroup.procs").write_text("41\n42\n")
    (own / "cgroup.subtree_control").write_text("")
    (tmp_path / "status").write_text("0::/system.slice/gateway.service\n")
    return own


def test_a_folder_counts_only_if_it_is_delegated(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert delegated_folder(tmp_path / "status", (tmp_path,)) is None
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"1" if name == "user.delegate" else b"0")
    assert delegated_folder(tmp_path / "status", (tmp_path,)) == folder
    (tmp_path / "status").write_text("4:memory:/x\n")
    assert delegated_folder(tmp_path / "status", (tmp_path,)) is None


def test_a_worker_gets_a_cgroup_of_its_own_with_limits(folder: Path) -> None:
    limits = WorkerLimits(folder)
    assert (folder / "gateway" / "cgroup.procs").read_text() == "42"  # the last one that was moved
    assert (folder / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    own = folder / "worker-w1"
    own.mkdir()
    for name in ("memory.max", "pids.max", "cpu.max"):
        (own / name).write_text("max")
    limits.hold("w1", 77)
    assert (own / "memory.max").read_text() == str(MEMORY_BYTES)
    assert int((own / "pids.max").read_text()) >= HTTP_WORKER_THREADS
    assert (own / "cgroup.procs").read_text() == "77"


def test_without_a_delegated_folder_nothing_is_done_or_said(caplog: pytest.LogCaptureFixture) -> None:
    limits = WorkerLimits(None)
    limits.hold("w1", os.getpid())
    limits.forget("w1")
    assert not caplog.records


def test_a_folder_that_can_not_be_divided_costs_the_limits_alone(tmp_path: Path) -> None:
    limits = WorkerLimits(tmp_path / "gone" / "deep")
    limits.hold("w1", os.getpid())
    assert not (tmp_path / "gone").exists()


def test_a_worker_that_has_ended_leaves_no_cgroup(folder: Path) -> None:
    limits = WorkerLimits(folder)
    (folder / "worker-w1").mkdir()
    limits.forget("w1")
    assert not (folder / "worker-w1").exists()
