"""The folder that an import writes to: what is there stays, and a file is whole or not there."""

import os
import stat
from pathlib import Path

import pytest

from importing.folder import ImportFolder
from importing.refusal import ImportRefused
from tests.support.openapi import document, imported, manifest, operation

GIVEN = document({"/a": {"get": operation("a")}, "/b": {"get": operation("b")}})


def test_files_are_readable_by_others_and_nothing_else_is_left(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert imported(tmp_path, GIVEN).code == 0
    finally:
        os.umask(before)
    assert sorted(os.listdir(tmp_path / "actions")) == ["a.yaml", "b.yaml"]
    assert stat.S_IMODE((tmp_path / "actions" / "a.yaml").stat().st_mode) == 0o644


def test_a_manifest_that_is_there_is_kept_and_named_and_written_over_by_force_alone(tmp_path: Path) -> None:
    imported(tmp_path, GIVEN, operations=("a",))
    edited = tmp_path / "actions" / "a.yaml"
    edited.write_text(edited.read_text().replace("risk_level: low", "risk_level: critical"))
    told = imported(tmp_path, GIVEN)
    assert told.code == 0
    assert "kept as they are: a.yaml; --force writes over them" in told.out
    assert "1 manifest in" in told.out
    assert manifest(tmp_path, "a")["risk_level"] == "critical"
    assert imported(tmp_path, GIVEN, force=True).code == 0
    assert manifest(tmp_path, "a")["risk_level"] == "low"


def test_an_operation_that_a_reviewer_has_renamed_is_there_already(tmp_path: Path) -> None:
    imported(tmp_path, GIVEN)
    file = tmp_path / "actions" / "a.yaml"
    file.with_name("read_a.yaml").write_text(file.read_text().replace("action_id: a", "action_id: read_a"))
    file.unlink()
    assert "kept as they are: read_a.yaml, b.yaml" in imported(tmp_path, GIVEN).out
    imported(tmp_path, GIVEN, force=True)
    assert sorted(os.listdir(tmp_path / "actions")) == ["b.yaml", "read_a.yaml"]
    assert manifest(tmp_path, "read_a")["action_id"] == "read_a"


def test_an_action_whose_file_a_reviewer_has_renamed_gets_no_second_file(tmp_path: Path) -> None:
    imported(tmp_path, GIVEN)
    (tmp_path / "actions" / "a.yaml").rename(tmp_path / "actions" / "reading.yaml")
    assert "kept as they are: reading.yaml" in imported(tmp_path, GIVEN, force=True).out
    assert sorted(os.listdir(tmp_path / "actions")) == ["b.yaml", "reading.yaml"]


def test_an_id_that_a_manifest_by_hand_has_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "actions").mkdir()
    by_hand = tmp_path / "actions" / "mine.yaml"
    by_hand.write_text("action_id: a\nversion: 1.0.0\nprovider_module_digest: builtin:echo\n")
    for force in (False, True):
        told = imported(tmp_path, GIVEN, force=force)
        assert "left out: a (the id a is taken by mine.yaml: import with --prefix)" in told.out
        assert sorted(os.listdir(tmp_path / "actions")) == ["b.yaml", "mine.yaml"]


def test_an_operation_of_another_api_with_the_same_id_is_left_out_and_not_taken_for_this_one(tmp_path: Path) -> None:
    imported(tmp_path, GIVEN)
    other = document({"/x": {"get": operation("a")}}, info={"title": "CRM", "version": "1"})
    assert "left out: a (the id a is taken by a.yaml: import with --prefix)" in imported(tmp_path, other).out
    assert imported(tmp_path, other, prefix="crm").code == 0
    assert sorted(os.listdir(tmp_path / "actions")) == ["a.yaml", "b.yaml", "crm_a.yaml"]


@pytest.mark.parametrize("kind", ["text", "folder", "dangling link", "link to a file"])
def test_whatever_has_the_name_of_a_new_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    (tmp_path / "actions").mkdir()
    target, other = tmp_path / "actions" / "a.yaml", tmp_path / "other"
    if kind == "text":
        target.write_text(":")
    elif kind == "folder":
        target.mkdir()
    elif kind == "dangling link":
        target.symlink_to(other)
    else:
        other.write_text(":")
        target.symlink_to(other)
    told = imported(tmp_path, GIVEN)
    assert (told.code, told.refusal) == (78, f"{target} is there already; --force writes over it.")
    assert os.listdir(tmp_path / "actions") == ["a.yaml"]
    assert other.exists() is (kind == "link to a file")


def test_a_place_that_is_no_folder_or_can_t_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "actions").write_text("")
    told = imported(tmp_path, GIVEN)
    assert (told.code, told.refusal) == (77, f"{tmp_path}/actions is no folder.")


def test_a_file_that_appears_while_an_import_runs_is_not_written_over(tmp_path: Path) -> None:
    folder = ImportFolder(tmp_path)
    (tmp_path / "a.yaml").write_text("mine")
    with pytest.raises(ImportRefused, match="is there already"):
        folder.write("a", "other", over=False)
    assert (tmp_path / "a.yaml").read_text() == "mine"
    assert os.listdir(tmp_path) == ["a.yaml"]
