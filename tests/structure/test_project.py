"""Developers' tools: the list of targets, and a release that refuses an unfinished state."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def test_make_help_lists_every_target() -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    listed = [line.split()[0] for line in run("make", "--no-print-directory", "help", cwd=ROOT).stdout.splitlines()]
    assert sorted(" ".join(phony).split()) == sorted(listed)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The tracked files of this tree as a repository of one commit."""
    names = run("git", "ls-files", "pyproject.toml", "CHANGELOG.md", "ipc/settings.py", "scripts", "sdk", cwd=ROOT)
    for name in names.stdout.splitlines():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name, follow_symlinks=False)
    for arguments in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"]):
        assert run("git", *arguments, cwd=tmp_path).returncode == 0
    return tmp_path


def test_a_release_names_everything_that_is_missing_at_once_and_builds_nothing(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    (checkout / "sdk/gateway_client/version.py").write_text('__version__ = "9.9.9"\n')
    refused = run("bash", "scripts/release.sh", sys.executable, checkout / "dist", cwd=checkout)
    assert refused.returncode == 1
    assert "not committed" in refused.stderr
    assert "CHANGELOG.md has no section" in refused.stderr
    assert "sdk/gateway_client/version.py has another version" in refused.stderr
    assert "3 problems, nothing built" in refused.stderr
    assert not (checkout / "dist").exists()


ENGINE = """\
#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
case $1 in
  save) echo "image $2" ;;
  build) [ ! -e "$(dirname "$0")/broken" ] || { echo "no space left"; exit 1; } ;;
  image) case $4 in *Digests*) [ -e "$(dirname "$0")/local" ] || echo "{base}" ;; *) echo c0ffee ;; esac ;;
esac
"""
BASE = "docker.io/library/debian@sha256:abc"


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A folder that is the PATH: what the script needs, and a podman that keeps what it is asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "cat", "dirname", "gzip", "mktemp", "rm", "sed", "sh", "uname"):
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    (folder / "podman").write_text(ENGINE.replace("{base}", BASE))
    (folder / "podman").chmod(0o755)
    return folder


def build_images(engine: Path, dist: Path) -> "subprocess.CompletedProcess[str]":
    dist.mkdir()
    return subprocess.run(
        [str(engine / "bash"), str(ROOT / "scripts" / "images.sh"), str(ROOT), str(dist), "1.2.3"],
        env=os.environ | {"PATH": str(engine)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_release_packs_an_image_of_each_target_of_the_containerfile(engine: Path, tmp_path: Path) -> None:
    done = build_images(engine, tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    packed = {gzip.decompress(one.read_bytes()).decode().strip() for one in (tmp_path / "dist").glob("*.gz")}
    assert packed == {"image action-gateway:1.2.3", "image action-gateway-egress:1.2.3"}
    asked = (engine / "asked").read_text()
    targets = re.findall(
        r"^FROM \S+ AS (gateway|egress)$", (ROOT / "contrib/container/Containerfile").read_text(), re.M
    )
    assert sorted(re.findall(r"--target (\S+)", asked)) == sorted(targets)


def test_images_are_built_on_one_base_by_its_digest_and_a_list_names_both(engine: Path, tmp_path: Path) -> None:
    assert build_images(engine, tmp_path / "dist").returncode == 0
    asked = (engine / "asked").read_text()
    assert re.findall(r"^pull (\S+)$", asked, re.M) == ["docker.io/library/debian:bookworm-slim"]
    assert re.findall(r"--build-arg BASE=(\S+)", asked) == [BASE, BASE]
    listed = (tmp_path / "dist" / "images.txt").read_text().splitlines()
    names = ("action-gateway-egress", "action-gateway")
    assert sorted(listed) == [f"{name}:1.2.3 sha256:c0ffee on {BASE}" for name in names]


def test_a_base_without_a_digest_ends_the_release(engine: Path, tmp_path: Path) -> None:
    (engine / "local").touch()
    done = build_images(engine, tmp_path / "dist")
    assert (done.returncode, "the base has no digest" in done.stderr) == (1, True)
    assert list((tmp_path / "dist").iterdir()) == []


def test_an_image_that_can_not_be_built_ends_the_release_with_what_the_engine_said(
    engine: Path, tmp_path: Path
) -> None:
    (engine / "broken").touch()
    done = build_images(engine, tmp_path / "dist")
    assert (done.returncode, "no space left" in done.stderr, list((tmp_path / "dist").iterdir())) == (1, True, [])


def test_without_an_engine_a_release_says_that_it_has_no_images(engine: Path, tmp_path: Path) -> None:
    (engine / "podman").unlink()
    done = build_images(engine, tmp_path / "dist")
    assert (done.returncode, "images are left out" in done.stderr) == (0, True)
