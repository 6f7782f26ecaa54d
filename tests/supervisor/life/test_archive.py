"""The copies of manifests: true to their digests, bounded, and never of another file than a manifest."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from ipc.messages.manifests import LoadedManifest
from supervisor.life.archive import FOLDER, INDEX, MOST_VERSIONS, ArchiveDamaged, ManifestArchive


def written(folder: Path, text: str, name: str = "a.yaml") -> LoadedManifest:
    (folder / name).write_text(text)
    return LoadedManifest("a", "1.0.0", name, f"sha256:{hashlib.sha256(text.encode()).hexdigest()}")


def record(kept: ManifestArchive, folder: Path, *loaded: LoadedManifest, at: str = "2026") -> list[str]:
    return kept.record(loaded, folder, folder / "modules", at)


@pytest.fixture
def kept(tmp_path: Path) -> ManifestArchive:
    (tmp_path / "state").mkdir()
    return ManifestArchive(tmp_path / "state", most_bytes=100)


def test_the_same_load_again_adds_nothing(kept: ManifestArchive, tmp_path: Path) -> None:
    one = written(tmp_path, "first")
    assert record(kept, tmp_path, one) == []
    assert record(kept, tmp_path, one) == []
    assert [version.digest for version in kept.history()["a"]] == [one.digest]
    assert kept.copy_of(one.digest) == b"first"


def test_old_versions_are_dropped_by_count_and_by_size_but_never_what_is_in_force(
    kept: ManifestArchive, tmp_path: Path
) -> None:  # fmt: skip
    last = written(tmp_path, "")
    for number in range(MOST_VERSIONS + 3):
        last = written(tmp_path, f"{number}")
        record(kept, tmp_path, last, at=f"{number:03}")
    versions = kept.history()["a"]
    assert (len(versions), versions[-1].digest) == (MOST_VERSIONS, last.digest)
    assert len(list((kept.folder).iterdir())) == MOST_VERSIONS + 1
    large = written(tmp_path, "x" * 1000)
    record(kept, tmp_path, large, at="999")
    assert [one.digest for one in kept.history()["a"]] == [large.digest]
    assert {path.name for path in kept.folder.iterdir()} == {INDEX, large.digest}


def test_a_file_that_has_changed_since_it_was_loaded_is_not_kept(kept: ManifestArchive, tmp_path: Path) -> None:
    one = written(tmp_path, "first")
    (tmp_path / "a.yaml").write_text("second")
    (problem,) = record(kept, tmp_path, one)
    assert problem.endswith("a.yaml has changed since it was loaded")
    assert kept.history() == {}


@pytest.mark.parametrize("name", ["../a.yaml", "sub/a.yaml", ".a.yaml", "secrets.json", "", "a\0.yaml"])
def test_a_front_can_name_no_file_beside_the_manifests(kept: ManifestArchive, tmp_path: Path, name: str) -> None:
    one = LoadedManifest("a", "1.0.0", name, written(tmp_path, "first").digest)
    assert record(kept, tmp_path, one) == ["a front named a manifest that can't be one"]
    assert kept.history() == {}


def test_a_copy_that_was_tampered_with_is_no_copy(kept: ManifestArchive, tmp_path: Path) -> None:
    one = written(tmp_path, "first")
    record(kept, tmp_path, one)
    (kept.folder / one.digest).write_text("other")
    assert kept.copy_of(one.digest) is None


def test_a_full_disk_loses_no_copy_that_was_kept(
    kept: ManifestArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    first = written(tmp_path, "first")
    record(kept, tmp_path, first)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    second = written(tmp_path, "second")
    with monkeypatch.context() as broken:
        broken.setattr("ipc.process.private_files.os.fsync", full)
        (problem,) = record(kept, tmp_path, second)
    assert "No space left on device" in problem
    assert [one.digest for one in kept.history()["a"]] == [first.digest]
    assert kept.copy_of(first.digest) == b"first"
    assert record(kept, tmp_path, second) == []
    assert kept.history()["a"][-1].digest == second.digest


@pytest.mark.parametrize("damaged", [b"{", b'{"a\xff": []}'])
def test_a_damaged_index_is_told_and_not_written_over(kept: ManifestArchive, tmp_path: Path, damaged: bytes) -> None:
    record(kept, tmp_path, written(tmp_path, "first"))
    (kept.state_dir / FOLDER / INDEX).write_bytes(damaged)
    with pytest.raises(ArchiveDamaged, match="can't be read"):
        record(kept, tmp_path, written(tmp_path, "second"))
    assert (kept.state_dir / FOLDER / INDEX).read_bytes() == damaged


def test_a_folder_that_lies_among_the_copies_keeps_nothing_from_being_recorded(
    kept: ManifestArchive, tmp_path: Path
) -> None:
    (kept.folder / "of a person").mkdir(parents=True)
    (kept.folder / "stray").touch()
    assert record(kept, tmp_path, written(tmp_path, "a")) == []
    assert (kept.folder / "of a person").is_dir()
    assert not (kept.folder / "stray").exists()
