"""Places that several kinds of processes read."""

import ssl
from pathlib import Path

import pytest

from ipc.walls.landlock import READ, READ_FILES, PathRule
from ipc.walls.places import outside_places


def test_certificates_are_read_in_their_folder_and_where_its_links_lead_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates, packaged, linked, behind = (tmp_path / name for name in ("certs", "packaged", "linked", "behind"))
    for folder in (certificates, packaged, linked, behind):
        folder.mkdir()
    (packaged / "a.crt").touch()
    (behind / "b.crt").touch()
    (linked / "b.crt").symlink_to(behind / "b.crt")
    (certificates / "own.pem").touch()
    for name, target in (
        ("a.pem", "../packaged/a.crt"), ("b.pem", str(linked / "b.crt")), ("1.0", "a.pem"), ("2.0", "own.pem"),
        ("gone.pem", "gone.crt"),
    ):  # fmt: skip
        (certificates / name).symlink_to(target)
    paths = ssl.DefaultVerifyPaths("", str(certificates), "", "", "", "")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    outside_places.cache_clear()
    found = {place for place in outside_places() if place.path.startswith(str(tmp_path))}
    outside_places.cache_clear()
    assert found == {
        PathRule(str(certificates), READ), PathRule(str(packaged), READ_FILES), PathRule(str(behind), READ_FILES)
    }  # fmt: skip
