"""The fs host call on a real folder: what is done, what is refused, what is observed."""

import base64
import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ipc.plan import FileAccess
from workers.host.fs import MAX_ENTRIES, FileHost, FolderEntry
from workers.host.meter import HostError, IoBudgetExceeded, Meter
from workers.host.space import FileSpace

OPERATIONS = ("read", "write", "append", "list", "stat", "delete")


def sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Files:
    """A root with a secret beside it, and hosts on it."""

    def __init__(self, folder: Path) -> None:
        self.outside = folder / "outside"
        self.outside.mkdir()
        (self.outside / "secret").write_text("s3cret")
        self.files_dir = str(folder)
        self.root = folder / "root"
        self.root.mkdir()
        self.meter = Meter(1000, time.monotonic() + 600)

    def host(
        self, *, meter: Meter | None = None, approved: tuple[str, ...] = (), max_entries: int = MAX_ENTRIES,
        space: FileSpace | None = None, **changes: Any,
    ) -> FileHost:  # fmt: skip
        values: dict[str, Any] = {"root": str(self.root), "allowed_operations": OPERATIONS, "allowed_paths": ("**",)}
        return FileHost(
            FileAccess(**(values | changes)), meter or self.meter, self.files_dir, approved, max_entries=max_entries,
            space=space,
        )  # fmt: skip

    def refused(self, operation: str, *arguments: str, host: FileHost | None = None) -> str:
        """Kind of the error with which an operation is refused; nothing of the outside is in its message."""
        with pytest.raises(HostError) as caught:
            getattr(host or self.host(), operation)(*arguments)
        failure = caught.value.failure
        assert str(self.root) not in failure.message
        observation = self.meter.observations[-1]
        assert (observation.kind, observation.ok, observation.body_sha256) == ("fs", False, None)
        return failure.kind


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_file_is_written_read_and_observed(files: Files) -> None:
    host = files.host()
    assert host.write("a.txt", "héllo", "utf8") == 6
    assert host.read("a.txt", "utf8") == "héllo"
    assert host.read("a.txt", "base64") == base64.b64encode("héllo".encode()).decode()
    assert (files.root / "a.txt").stat().st_mode & 0o777 == 0o600
    written, read, _ = files.meter.observations
    digest = sha("héllo".encode())
    assert (written.target, written.before_sha256, written.body_sha256, written.bytes) == (
        "write a.txt",
        None,
        digest,
        6,
    )
    assert (read.target, read.before_sha256, read.body_sha256) == ("read a.txt", digest, digest)


def test_folders_above_a_new_file_are_made_for_the_owner_only(files: Files) -> None:
    files.host().write("a/b/c.txt", "x", "utf8")
    assert (files.root / "a").stat().st_mode & 0o777 == 0o700
    assert (files.root / "a" / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "root", ["{top}", "{top}/files-2", "{top}/files/..", "{top}/files//a", "{top}/files/link", "/", ""]
)
def test_a_root_elsewhere_than_in_the_folder_of_all_files_is_refused_and_touched_by_nothing(
    files: Files, root: str
) -> None:
    """A plan may name any folder: a front that was taken over makes plans."""
    top = files.files_dir
    files.files_dir = f"{top}/files"
    os.mkdir(files.files_dir)
    os.symlink(f"{top}/root", f"{files.files_dir}/link")
    host = files.host(root=root.format(top=top))
    assert files.refused("write", "a", "x", "utf8", host=host) == "denied"
    assert files.refused("list_folder", "", host=host) == "denied"
    assert os.listdir(files.root) == []
    assert os.listdir(files.files_dir) == ["link"]


def test_a_root_that_does_not_exist_yet_is_made_by_the_first_write(files: Files) -> None:
    files.root = files.root / "not" / "there"
    assert files.refused("read", "a", "utf8") == "not-found"
    files.host().write("a", "x", "utf8")
    assert files.root.stat().st_mode & 0o777 == files.root.parent.stat().st_mode & 0o777 == 0o700


def test_a_write_replaces_the_file_and_leaves_nothing_beside_it(files: Files) -> None:
    host = files.host()
    host.write("a", "one", "utf8")
    before = (files.root / "a").stat().st_ino
    host.write("a", "two", "utf8")
    assert (files.root / "a").read_text() == "two"
    assert (files.root / "a").stat().st_ino != before
    assert os.listdir(files.root) == ["a"]
    assert files.meter.observations[-1].before_sha256 == sha(b"one")


def test_a_write_that_fails_leaves_the_old_content(files: Files) -> None:
    files.host().write("a", "old", "utf8")

    class Late(Meter):
        calls = 0

        def remaining(self) -> float:
            self.calls += 1
            if self.calls > 3:
                raise HostError("timeout", "over")
            return 1.0

    with pytest.raises(HostError):
        files.host(meter=Late(10, 0), max_file_bytes=1 << 30).write("a", "x" * (5 << 20), "utf8")
    assert (files.root / "a").read_text() == "old"
    assert os.listdir(files.root) == ["a"]


def test_append_adds_and_creates(files: Files) -> None:
    host = files.host()
    assert host.append("log/a", "one\n", "utf8") == 4
    assert host.append("log/a", base64.b64encode(b"\xfftwo").decode(), "base64") == 8
    assert (files.root / "log" / "a").read_bytes() == b"one\n\xfftwo"
    first, second = files.meter.observations
    assert (first.before_sha256, first.body_sha256) == (None, sha(b"one\n"))
    assert (second.before_sha256, second.body_sha256) == (sha(b"one\n"), sha(b"one\n\xfftwo"))


def test_list_and_stat_tell_files_and_folders_only(files: Files) -> None:
    host = files.host(denied_paths=("private/**",))
    host.write("b", "12345", "utf8")
    host.write("a/x", "", "utf8")
    (files.root / "private").mkdir()
    (files.root / "link").symlink_to("b")
    (files.root / ".gateway-0011").write_text("half")
    os.mkfifo(files.root / "fifo")
    assert host.list_folder("") == [FolderEntry("a", "directory", 0), FolderEntry("b", "file", 5)]
    assert host.list_folder("a") == [FolderEntry("x", "file", 0)]
    assert host.stat("b") == FolderEntry("b", "file", 5)
    assert host.stat("a") == FolderEntry("a", "directory", 0)
    assert host.stat("").kind == "directory"
    assert files.refused("stat", "link") == "conflict"
    assert files.refused("list_folder", "b") == "conflict"
    assert files.refused("list_folder", "nowhere") == "not-found"


def test_a_folder_with_too_many_entries_is_not_listed(files: Files) -> None:
    host = files.host(max_entries=3)
    for number in range(3):
        (files.root / str(number)).touch()
    assert len(host.list_folder("")) == 3
    (files.root / "one more").touch()
    assert files.refused("list_folder", "", host=host) == "too-large"


def test_delete_removes_a_file_and_remembers_what_it_held(files: Files) -> None:
    host = files.host()
    host.write("a", "gone", "utf8")
    host.delete("a")
    assert not (files.root / "a").exists()
    seen = files.meter.observations[-1]
    assert (seen.target, seen.before_sha256, seen.body_sha256) == ("delete a", sha(b"gone"), None)
    assert files.refused("delete", "a") == "not-found"
    (files.root / "folder").mkdir()
    assert files.refused("delete", "folder") == "conflict"


@pytest.mark.parametrize(
    "path",
    ["../outside/secret", "/etc/passwd", "a/../../outside/secret", "..", "", "a\0b", "./a", "a//b", "a/", "\ud800"],
)  # fmt: skip
@pytest.mark.parametrize("operation", ["read", "write", "append", "delete"])
def test_no_spelling_leads_out_of_the_root(files: Files, operation: str, path: str) -> None:
    more = {"read": ("utf8",), "write": ("x", "utf8"), "append": ("x", "utf8"), "delete": ()}[operation]
    files.refused(operation, path, *more)
    assert (files.outside / "secret").read_text() == "s3cret"
    assert os.listdir(files.root) == []


@pytest.mark.parametrize("operation", ["read", "write", "append", "delete", "list_folder"])
@pytest.mark.parametrize("link", ["../outside", "/proc/self/root/etc", "{absolute}", "loop"])
def test_no_link_is_followed_in_the_middle_or_at_the_end(files: Files, operation: str, link: str) -> None:
    (files.root / "loop").symlink_to("loop")
    target = link.format(absolute=files.outside)
    (files.root / "way").symlink_to(target)
    (files.root / "end").symlink_to(f"{target}/secret")
    more = {"read": ("utf8",), "write": ("x", "utf8"), "append": ("x", "utf8")}.get(operation, ())
    assert files.refused(operation, "way/secret", *more) in ("denied", "conflict")
    assert files.refused(operation, "end", *more) in ("denied", "conflict")
    assert (files.outside / "secret").read_text() == "s3cret"
    assert os.listdir(files.outside) == ["secret"]


def test_a_file_with_a_second_name_is_not_appended_to(files: Files) -> None:
    os.link(files.outside / "secret", files.root / "alias")
    assert files.refused("append", "alias", "x", "utf8") == "conflict"
    files.host().write("alias", "new", "utf8")
    assert (files.outside / "secret").read_text() == "s3cret"


@pytest.mark.parametrize("operation", ["read", "write", "append", "delete"])
def test_neither_pipes_nor_folders_are_opened_for_data(files: Files, operation: str) -> None:
    os.mkfifo(files.root / "fifo")
    (files.root / "folder").mkdir()
    more = {"read": ("utf8",), "write": ("x", "utf8"), "append": ("x", "utf8"), "delete": ()}[operation]
    assert files.refused(operation, "fifo", *more) == "conflict"
    assert files.refused(operation, "folder", *more) == "conflict"


def test_a_file_in_the_way_of_a_folder_is_a_conflict(files: Files) -> None:
    files.host().write("a", "x", "utf8")
    assert files.refused("write", "a/b", "x", "utf8") == "conflict"


def test_sizes_are_capped_in_every_direction(files: Files) -> None:
    host = files.host(max_file_bytes=10)
    assert host.write("a", "x" * 10, "utf8") == 10
    assert files.refused("write", "b", "x" * 11, "utf8", host=host) == "too-large"
    assert files.refused("append", "a", "x", "utf8", host=host) == "too-large"
    assert (files.root / "a").read_text() == "x" * 10
    (files.root / "big").write_bytes(b"x" * 11)
    assert files.refused("read", "big", "utf8", host=host) == "too-large"


@pytest.mark.parametrize("operation", ["read", "write", "append", "list_folder", "stat", "delete"])
def test_an_operation_that_is_not_allowed_is_denied(files: Files, operation: str) -> None:
    name = operation.removesuffix("_folder")
    host = files.host(allowed_operations=tuple(other for other in OPERATIONS if other != name))
    more = {"read": ("utf8",), "write": ("x", "utf8"), "append": ("x", "utf8")}.get(operation, ())
    assert files.refused(operation, "a", *more, host=host) == "denied"
    assert os.listdir(files.root) == []


def test_only_allowed_paths_that_are_not_denied_are_touched(files: Files) -> None:
    host = files.host(allowed_paths=("notes/**", "a.txt"), denied_paths=("notes/private/**", "**/*.key"))
    for path in ("notes/x", "notes/deep/y", "a.txt"):
        host.write(path, "", "utf8")
    for path in ("b.txt", "notes/private/x", "notes/x.key", "Notes/x"):
        assert files.refused("write", path, "", "utf8", host=host) == "denied"
    assert files.refused("list_folder", "", host=host) == "denied"


def test_without_allowed_paths_nothing_is_touched(files: Files) -> None:
    assert files.refused("write", "a", "", "utf8", host=files.host(allowed_paths=())) == "denied"


def test_an_approved_path_is_allowed_but_never_a_denied_one(files: Files) -> None:
    host = files.host(allowed_paths=("a",), denied_paths=("c",), approved=("b", "c"))
    host.write("b", "", "utf8")
    assert files.refused("write", "c", "", "utf8", host=host) == "denied"
    assert files.refused("write", "d", "", "utf8", host=host) == "denied"


@pytest.mark.parametrize("data", ["a", "====", "a b c", "YQ==\n", "é"])
def test_malformed_base64_is_refused(files: Files, data: str) -> None:
    assert files.refused("write", "a", data, "base64") == "invalid-input"


def test_bytes_that_are_no_text_are_refused_as_text(files: Files) -> None:
    (files.root / "a").write_bytes(b"\xff\xfe")
    assert files.refused("read", "a", "utf8") == "invalid-input"
    assert files.host().read("a", "base64") == "//4="


def test_every_attempt_counts_and_the_budget_ends_the_call(files: Files) -> None:
    meter = Meter(2, time.monotonic() + 600)
    host = files.host(meter=meter)
    host.write("a", "", "utf8")
    with pytest.raises(HostError):
        host.read("../x", "utf8")
    with pytest.raises(IoBudgetExceeded):
        host.read("a", "utf8")
    assert meter.is_exceeded
    assert (meter.io_calls, len(meter.observations)) == (2, 2)


def test_nothing_is_done_once_the_time_is_over(files: Files) -> None:
    with pytest.raises(HostError) as caught:
        files.host(meter=Meter(10, time.monotonic() - 1)).write("a", "", "utf8")
    assert caught.value.failure.kind == "timeout"
    assert os.listdir(files.root) == []


def test_no_descriptor_stays_open(files: Files) -> None:
    before = len(os.listdir("/proc/self/fd"))
    host = files.host()
    host.write("a/b", "x", "utf8")
    host.append("a/b", "x", "utf8")
    host.read("a/b", "utf8")
    host.list_folder("a")
    host.stat("a/b")
    host.delete("a/b")
    for path in ("../x", "a/b/c", "missing"):
        with pytest.raises(HostError):
            host.read(path, "utf8")
    assert len(os.listdir("/proc/self/fd")) == before
