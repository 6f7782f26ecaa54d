"""The kernel refuses to leave a folder, whatever the path says."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.host.openat2 import open_beneath


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "file").write_text("in")
    (tmp_path / "outside").write_text("out")
    (root / "link").symlink_to("file")
    (root / "escape").symlink_to("../outside")
    (root / "absolute").symlink_to("/etc")
    (root / "sub" / "up").symlink_to("..")
    (root / "magic").symlink_to("/proc/self/root")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_files_beneath_are_opened_close_on_exec(folder: int) -> None:
    file = open_beneath(folder, "file", os.O_RDONLY)
    assert os.read(file, 10) == b"in"
    assert not os.get_inheritable(file)
    os.close(file)


@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        ("../outside", {errno.EXDEV}),
        ("sub/../../outside", {errno.EXDEV}),
        ("/etc/passwd", {errno.EXDEV}),
        ("link", {errno.ELOOP}),
        ("escape", {errno.ELOOP}),
        ("absolute/passwd", {errno.ELOOP}),
        ("sub/up/file", {errno.ELOOP}),
        ("magic/etc/passwd", {errno.ELOOP}),
        ("missing", {errno.ENOENT}),
        ("file/x", {errno.ENOTDIR}),
    ],
)
def test_everything_else_is_refused(folder: int, path: str, numbers: set[int]) -> None:
    with pytest.raises(OSError, match=r".*") as caught:
        open_beneath(folder, path, os.O_RDONLY)
    assert caught.value.errno in numbers
