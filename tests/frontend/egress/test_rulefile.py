"""The file of learned rules: written by this front or another, intact or spoiled."""

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from frontend.actions.targets import NOTHING_LEARNED, Learned
from frontend.egress.rulefile import RuleFile
from frontend.egress.rules import LearnedRule, Rules, decode_rules, encode_rules
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, write_private
from tests.support.logs import capture_logs


def content(*domains: str) -> bytes:
    return encode_rules(
        Rules(domains=tuple(LearnedRule("a", one, "cli", "2026-11-21T11:12:13.123Z", "ada") for one in domains))
    )


def test_no_file_is_nothing_learned(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "learned.json")
    assert file.learned("a") is NOTHING_LEARNED
    assert file.rules() == Rules()


def test_what_another_front_wrote_counts_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    file = RuleFile(path)
    for domains in (["x.example"], ["y.example"], ["x.example", "y.example"], []):
        write_private(path, content(*domains))
        assert file.learned("a") == Learned(tuple(domains))
        assert file.learned("b") is NOTHING_LEARNED
    write_private(path, content("x.example"))
    assert file.learned("a").domains == ("x.example",)
    path.unlink()
    assert file.learned("a") is NOTHING_LEARNED


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    write_private(path, content("x.example"))
    file = RuleFile(path)
    assert file.learned("a") is file.learned("a")
    assert file.rules() is file.rules()


def test_what_this_front_wrote_itself_is_not_taken_apart_again_and_whatever_else_lies_there_is(tmp_path: Path) -> None:
    path, rules = tmp_path / "learned.json", decode_rules(content("x.example"))
    file = RuleFile(path)
    file.expect(content("x.example"), rules)
    assert file.rules() == Rules(), "it is not there yet"
    write_private(path, content("x.example"))
    assert file.rules() is rules
    write_private(path, content("y.example"))
    assert file.learned("a").domains == ("y.example",)
    write_private(path, content("x.example")[:-2])
    assert file.learned("a") is NOTHING_LEARNED


def test_a_file_that_could_not_be_read_for_a_moment_counts_again_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    write_private(path, content("x.example"))
    file = RuleFile(path)
    write_private(path, content("x.example", "y.example"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Use up this process's descriptors; open ones of other threads stay usable.
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard))
    taken: list[int] = []
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        assert file.learned("a") is NOTHING_LEARNED
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
    assert file.learned("a").domains == ("x.example", "y.example")


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def open_to_others(path: Path) -> None:
    path.chmod(0o640)


def somebody_elses(path: Path) -> None:
    os.chown(path, 4711, -1)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def too_large(path: Path) -> None:
    path.write_bytes(b" " * 1_048_577)


def a_circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def a_rule_too_wide(path: Path) -> None:
    document = json.loads(path.read_text())
    document["domains"][0]["text"] = "*.example"
    path.write_text(json.dumps(document))


Spoil = Callable[[Path], None]
SPOILED: list[tuple[Spoil, Exit]] = [
    (half, Exit.CONFIG), (open_to_others, Exit.CONFIG), (a_folder, Exit.CONFIG), (a_pipe, Exit.CONFIG),
    (too_large, Exit.CONFIG), (a_rule_too_wide, Exit.CONFIG), (a_circle, Exit.NO_PERMISSION),
]  # fmt: skip
if os.geteuid() == 0:
    SPOILED.append((somebody_elses, Exit.NO_PERMISSION))


@pytest.mark.parametrize(("spoil", "code"), SPOILED)
def test_a_file_that_can_not_be_believed_teaches_nothing_says_so_once_and_counts_when_mended(
    tmp_path: Path, spoil: Spoil, code: Exit
) -> None:
    path = tmp_path / "learned.json"
    write_private(path, content("x.example"))
    file = RuleFile(path)
    assert file.learned("a").domains == ("x.example",)
    spoil(path)
    with capture_logs() as said:
        for _ in range(3):
            assert file.learned("a") is NOTHING_LEARNED
            with pytest.raises(PrivateFileError, match=path.name):
                file.rules()
    assert [one["event"] for one in said] == ["the file of learned rules can't be used: no learned rule is in force"]

    with pytest.raises(PrivateFileError) as refused:  # and no front starts with it
        RuleFile(path)
    assert refused.value.exit_code == code

    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
    with capture_logs() as said:
        write_private(path, content("y.example"))
        assert file.learned("a").domains == ("y.example",)
        assert file.rules() == RuleFile(path).rules()
    assert [one["event"] for one in said] == ["learned rules are in force again"]
