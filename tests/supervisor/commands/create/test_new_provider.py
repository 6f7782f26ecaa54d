"""`gateway new provider`: what it writes is whole, for each language, and nothing is written over."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from frontend.actions.registry import load_manifests
from supervisor.cli import main
from supervisor.commands.create.new_provider import LANGUAGES, files

ROOT = Path(__file__).resolve().parents[4]
INTERFACE = ROOT / "workers" / "wit" / "provider.wit"
PINNED_CRATE = re.compile(
    r'\[\[package\]\]\nname = "([^"]+)"\nversion = "[^"]+"\nsource = "[^"]+"\nchecksum = "[0-9a-f]{64}"'
)


@pytest.fixture(params=sorted(LANGUAGES))
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def new(folder: Path, language: str, name: str = "greet") -> Path:
    assert main(["new", "provider", name, "--language", language, "--dir", str(folder)]) == 0
    return folder / "providers" / name


def test_it_has_source_interface_build_manifest_grant_and_a_call(
    tmp_path: Path, language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new(tmp_path / "gate", language)
    said = capsys.readouterr().out
    for name in (LANGUAGES[language].source, "Makefile", "build.sh", "install.sh", "greet.yaml", "request.json"):
        assert (made / name).is_file(), name
    data = json.loads((tmp_path / "gate" / "policy" / "data.json").read_text())
    assert data["acl"]["dev:anonymous"]["actions"] == ["greet"]
    assert f"make -C {made}" in said
    assert LANGUAGES[language].source in said


def test_the_interface_is_the_gateway_s_byte_for_byte(tmp_path: Path, language: str) -> None:
    (interface,) = new(tmp_path, language).rglob("provider.wit")
    assert interface.read_bytes() == INTERFACE.read_bytes()


def test_every_place_for_a_name_has_the_name(language: str) -> None:
    texts = {str(place): text for place, text in files("greet", language) if place.suffix not in (".lock", ".json")}
    assert [name for name, text in texts.items() if re.search(r"\b(NAME|FUEL|MEMORY_MB)\b", name + text)] == []
    assert "greet" in texts["install.sh"]


def test_the_manifest_loads_and_takes_the_request(tmp_path: Path, language: str) -> None:
    made = new(tmp_path, language)
    folder = tmp_path / "alone"
    folder.mkdir()
    (made / "greet.yaml").rename(folder / "greet.yaml")
    manifests, problems = load_manifests(folder, has_proxy=False)
    assert ([one.action_id for one in manifests], problems) == (["greet"], [])
    schema = yaml.safe_load((folder / "greet.yaml").read_text())["io"]["request_schema"]
    Draft202012Validator(schema).validate(json.loads((made / "request.json").read_text()))


def test_everything_that_a_build_brings_is_pinned_by_hash(language: str) -> None:
    texts = {place.name: text for place, text in files("greet", language)}
    pinned = [name for name in texts if name in ("requirements.lock", "package-lock.json", "Cargo.lock")]
    assert pinned
    for block in re.split(r"\n(?=[a-z])", texts.get("requirements.lock", "")):
        assert not block or re.match(r"[a-z0-9_-]+==\S+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n?)+$", block), block
    packages = json.loads(texts.get("package-lock.json", '{"packages": {}}'))["packages"]
    assert all("integrity" in package for name, package in packages.items() if name)
    crates = texts.get("Cargo.lock", "")
    assert set(re.findall(r'^name = "([^"]+)"', crates, re.M)) <= {*PINNED_CRATE.findall(crates), "provider"}


def test_what_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = new(tmp_path, "python") / "app.py"
    source.write_text("mine\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["new", "provider", "greet", "--language", "js", "--dir", str(tmp_path)]) == 78
    assert "is there already; nothing was changed" in capsys.readouterr().err
    (tmp_path / "actions" / "other.yaml").write_text("mine\n")
    assert main(["new", "provider", "other", "--language", "js", "--dir", str(tmp_path)]) == 78
    assert main(["new", "provider", "../out", "--language", "js", "--dir", str(tmp_path)]) == 2
    (tmp_path / "actions" / "other.yaml").unlink()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_second_provider_joins_the_first(tmp_path: Path) -> None:
    new(tmp_path, "zig")
    new(tmp_path, "rust", "other")
    data = json.loads((tmp_path / "policy" / "data.json").read_text())
    assert data["acl"]["dev:anonymous"]["actions"] == ["greet", "other"]
    assert sorted(one.name for one in (tmp_path / "providers").iterdir()) == ["greet", "other"]


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "providers").write_text("")
    assert main(["new", "provider", "greet", "--language", "zig", "--dir", str(tmp_path)]) == 77
    assert "can't be written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["data.json", "gateway.rego", "../gateway.toml"])
def test_a_file_that_is_no_text_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    file = (tmp_path / "policy" / name).resolve()
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"\xff")
    assert main(["new", "action", "greet", "--dir", str(tmp_path)]) == 78
    assert f"{file} is not UTF-8" in capsys.readouterr().err
