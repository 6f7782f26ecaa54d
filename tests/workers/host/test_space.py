"""Room for files of actions: what a root may hold, and what volumes keep free."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ipc.plan import FileAccess
from workers.host.fs import FileHost
from workers.host.meter import HostError, Meter
from workers.host.space import FileSpace, LedgerReserve


@dataclass
class Bench:
    """A root, and one worker's knowledge of it under a clock of the test's own."""

    folder: Path
    now: float = 0.0
    ledger: LedgerReserve | None = None
    space: FileSpace = field(init=False)

    def __post_init__(self) -> None:
        self.space = FileSpace(self.ledger, lambda: self.now)
        (self.folder / "root").mkdir(exist_ok=True)

    def host(self, **limits: Any) -> FileHost:
        access = FileAccess(str(self.folder / "root"), ("write", "append", "delete"), ("**",), **limits)
        return FileHost(access, Meter(1000, time.monotonic() + 600), str(self.folder), space=self.space)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.folder / "root"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def refused(host: FileHost, operation: str, path: str, content: str) -> tuple[str, str]:
    with pytest.raises(HostError) as caught:
        getattr(host, operation)(path, content, "utf8")
    return caught.value.failure.kind, caught.value.failure.message


def test_a_file_that_a_killed_worker_left_half_written_takes_no_room_for_good(bench: Bench) -> None:
    root = bench.folder / "root"
    (root / "deep").mkdir()
    for name in (".gateway-00", "deep/.gateway-01", ".gateway-02", "old"):
        (root / name).write_text("x" * 3)
        if name != ".gateway-02":
            os.utime(root / name, times=(0, time.time() - 7300))
    host = bench.host(max_total_bytes=10)
    host.write("a", "x" * 4, "utf8")
    assert refused(host, "write", "b", "x")[0] == "too-large"
    assert bench.names() == [".gateway-02", "a", "deep", "old"]
    assert os.listdir(root / "deep") == []


def test_the_files_below_a_root_have_no_more_bytes_together_than_the_manifest_says(bench: Bench) -> None:
    host = bench.host(max_total_bytes=10)
    host.write("a", "x" * 6, "utf8")
    assert refused(host, "write", "b", "x" * 5)[0] == "too-large"
    host.write("b", "x" * 4, "utf8")
    assert refused(host, "append", "b", "x")[0] == "too-large"
    assert refused(host, "write", "b", "x" * 5)[0] == "too-large"
    host.write("b", "y" * 4, "utf8")
    host.write("a", "x", "utf8")
    host.append("b", "x" * 5, "utf8")
    assert (bench.names(), (bench.folder / "root" / "b").read_text()) == (["a", "b"], "yyyyxxxxx")


def test_no_more_files_and_folders_lie_below_a_root_than_the_manifest_says(bench: Bench) -> None:
    host = bench.host(max_files=3)
    host.write("folder/a", "x", "utf8")
    assert refused(host, "write", "another/b", "x")[0] == "too-large"
    assert bench.names() == ["folder"], "not even the folder is made"
    host.write("b", "x", "utf8")
    assert refused(host, "append", "c", "x")[0] == "too-large"
    host.append("b", "x", "utf8")
    host.delete("b")
    host.write("c", "x", "utf8")


def test_other_processes_writes_count_after_a_while(bench: Bench) -> None:
    host = bench.host(max_files=2)
    host.write("a", "x", "utf8")
    (bench.folder / "root" / "of-another").write_text("x")
    bench.now += 3600
    assert refused(host, "write", "b", "x")[0] == "too-large"


def test_a_folder_beyond_its_bound_takes_what_makes_it_no_larger(bench: Bench) -> None:
    for name in range(5):
        (bench.folder / "root" / str(name)).write_text("xx")
    host = bench.host(max_files=3)
    assert refused(host, "append", "0", "x")[0] == "too-large"
    assert host.write("0", "yy", "utf8") == 2


def test_deep_folders_are_counted_with_few_descriptors(bench: Bench) -> None:
    deep = "/".join(["d"] * 100)
    bench.host().write(f"{deep}/a", "x", "utf8")
    assert refused(Bench(bench.folder).host(max_files=101), "write", "b", "x")[0] == "too-large"
    Bench(bench.folder).host(max_files=102).write("b", "x", "utf8")


def test_the_volume_of_the_ledger_keeps_more_free_than_any_write_may_take(bench: Bench) -> None:
    volume = os.statvfs(bench.folder)
    device, free = os.stat(bench.folder).st_dev, volume.f_bavail * volume.f_frsize
    full = Bench(bench.folder, ledger=LedgerReserve(device, free * 2)).host()
    kind, message = refused(full, "write", "folder/a", "x")
    assert (kind, "too little room" in message) == ("unavailable", True)
    assert refused(full, "append", "a", "x")[0] == "unavailable"
    assert bench.names() == []
    Bench(bench.folder, ledger=LedgerReserve(device + 1, free * 2)).host().write("a", "x", "utf8")
    Bench(bench.folder, ledger=LedgerReserve(device, 0)).host().write("a", "x", "utf8")
