"""A worker that is asked what lies there: it reads one file, tells the notary alone, and runs nothing."""

import os
from pathlib import Path

import msgspec
import pytest

from ipc.expected import FileToLeave
from ipc.messages.attesting import LookAtFile, Seen
from ipc.plan import Plan
from ipc.verifiers import kept_file
from tests.support.worker_peers import Worker
from tests.support.worker_plans import text, write_plan
from tests.support.worker_template import Template


def seen(worker: Worker, file: FileToLeave, number: int = 1, seconds: float = 60.0) -> Seen:
    worker.notary.send(LookAtFile(number, "fs_hash", file, seconds))
    told = worker.told()
    assert isinstance(told, Seen)
    assert told.number == number
    return told


def kept(plan: Plan) -> FileToLeave:
    file = kept_file(plan)
    assert file is not None
    return file


@pytest.fixture
def worker(running: Template) -> Worker:
    return running.born("fs")


def test_it_tells_whether_the_file_is_what_a_call_was_to_leave(worker: Worker, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "notes/a", "hello")
    file = kept(plan)
    assert seen(worker, file) == Seen(1, "absent")
    assert worker.call(plan).verification.outcome == "verified"
    assert seen(worker, file, 2) == Seen(2, "matches", file.sha256)
    (tmp_path / "notes" / "a").write_text("hello, world")
    differs = seen(worker, file, 3)
    assert (differs.state, differs.sha256 != file.sha256) == ("differs", True)
    assert (tmp_path / "notes" / "a").read_text() == "hello, world"


def test_it_reads_nothing_but_a_regular_file_below_the_root(worker: Worker, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "folder").mkdir(parents=True)
    outside.write_text("x")
    (root / "link").symlink_to(outside)
    (root / "step").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    states = {
        path: seen(worker, kept(write_plan(root, path)), number)
        for number, path in enumerate(("folder", "link", "step/outside", "pipe", "../outside", "folder/none", ""))
    }
    assert {told.sha256 for told in states.values()} == {None}
    assert {path: told.state for path, told in states.items()} == {
        "folder": "unreadable", "link": "unreadable", "step/outside": "unreadable", "pipe": "unreadable",
        "../outside": "absent", "folder/none": "absent", "": "absent",
    }  # fmt: skip


def test_a_file_that_takes_too_long_can_t_be_read(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert seen(worker, kept(write_plan(tmp_path, "a")), seconds=0.0).state == "unreadable"


def test_a_plan_that_waits_for_its_word_is_not_disturbed(worker: Worker, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "a", "hello")
    worker.give(plan, "c1")
    assert seen(worker, kept(plan)).state == "absent"
    worker.allow(plan, "c1")
    assert worker.ended("c1").outcome == "success"


def test_each_notary_that_asks_gets_an_answer(worker: Worker, tmp_path: Path) -> None:
    file = kept(write_plan(tmp_path, "a", "x"))
    assert seen(worker, file).state == "absent"
    (tmp_path / "a").write_text("x")
    worker.tie()
    assert seen(worker, file).state == "matches"


@pytest.mark.parametrize(
    "change",
    [
        {"verifier_kind": "http_status"}, {"verifier_kind": "response_schema"}, {"verifier_kind": "none"},
        {"files": None}, {"request": text({"path": "a"})}, {"request": text({"path": 1, "content": "x"})},
        {"verification_config": text({"path_pointer": "/nowhere"})}, {"verification_config": "[]"},
        {"request": text({"path": "a" * 5000, "content": "x"})},
    ],
)  # fmt: skip
def test_nothing_is_kept_where_no_verifier_could_look_again(change: dict[str, object], tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "a", "x")
    assert kept_file(plan) is not None
    assert kept_file(msgspec.structs.replace(plan, **change)) is None
