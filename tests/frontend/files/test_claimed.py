"""A file that a name claims is read, or its folder is refused: no rule is left out in silence."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from frontend.files.claimed import FileNotReadable, claimed_names, read_regular


def is_rule(name: str) -> bool:
    return name.endswith(".rego")


def test_files_are_named_in_order_through_links_too_and_what_is_hidden_is_not(tmp_path: Path) -> None:
    """As a ConfigMap of Kubernetes is mounted: links through `..data` into a folder that is replaced as a whole."""
    (tmp_path / "..2026_11_26").mkdir()
    (tmp_path / "..data").symlink_to("..2026_11_26")
    for name in ("b.rego", "a.rego"):
        (tmp_path / "..2026_11_26" / name).write_text(name)
        (tmp_path / name).symlink_to(f"..data/{name}")
    (tmp_path / ".#b.rego").symlink_to("nowhere")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    assert claimed_names(tmp_path, is_rule) == (["a.rego", "b.rego"], [])
    assert read_regular(tmp_path / "a.rego", 100) == b"a.rego"


@pytest.mark.parametrize(
    "name",
    ["a\u200b.rego", "a.rego\u200b", "a\u202e.rego", "a.rego ", "a.REGO", "a\n.rego", "a.\uff52ego", "a\u115f.rego"],
)
def test_a_name_that_only_looks_right_is_refused_and_shown_escaped(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    names, refusals = claimed_names(tmp_path, is_rule)
    assert names == []
    assert [one.mend for one in refusals] == ["Rename it, with visible characters and an ending in lower case."]


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/a\xff.rego", os.O_CREAT | os.O_WRONLY))
    _, (refusal,) = claimed_names(tmp_path, is_rule)
    assert refusal.name.encode() == b"a\\udcff.rego"


@pytest.mark.parametrize("place", ["sub/a.rego", "sub/deep/a.rego", "sub/deep/a.REGO"])
def test_a_subfolder_with_such_a_file_is_refused(tmp_path: Path, place: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text("x")
    names, (refusal,) = claimed_names(tmp_path, is_rule)
    assert (names, refusal.name) == ([], "sub")
    assert refusal.problem.startswith(f"this subfolder holds {place.removeprefix('sub/')}, and ")


def test_a_subfolder_behind_a_link_counts_too(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "a.rego").write_text("x")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "more").symlink_to(tmp_path / "away")
    assert [one.name for one in claimed_names(tmp_path / "rules", is_rule)[1]] == ["more"]


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.symlink_to("nowhere"), "is a link that leads to no readable file: No such file"),
        (lambda path: path.symlink_to(path.name), "is a link that leads to no readable file: Too many levels"),
        (os.mkfifo, "is a pipe, not a file."),
        (Path.mkdir, "is a folder, not a file."),
        (lambda path: path.symlink_to("/dev/null"), "is a device, not a file."),
        (_socket, "cannot be read: "),
    ],
)
def test_an_unreadable_file_is_reported_without_waiting(
    tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    make(tmp_path / "a.rego")
    assert claimed_names(tmp_path, is_rule) == (["a.rego"], [])
    with pytest.raises(FileNotReadable) as error:
        read_regular(tmp_path / "a.rego", 100)
    assert error.value.problem.startswith(problem)
    assert error.value.mend
