"""The committed components: named by their digests, importing what they should, silent about where they were built."""

import hashlib
from pathlib import Path

import pytest

from tests.support.provider_host import Providers

ROOT = Path(__file__).resolve().parents[2]
BUILTIN = ROOT / "workers" / "providers"
FIXTURES = ROOT / "tests" / "providers" / "fixtures"
IMPORTS: dict[str, set[str]] = {
    "echo": set(),
    "text_digest": set(),
    "file_write": {"fs"},
    "http": {"http"},
    "mcp": {"http"},
    "spin": {"clock"},
    "fs_probe": {"fs"},
    "http_probe": {"http"},
    "log_probe": {"log"},
}
PATHS = {path.stem: path for folder in (BUILTIN, FIXTURES) for path in folder.glob("*.wasm")}


@pytest.mark.parametrize("folder", [BUILTIN, FIXTURES], ids=["builtin", "fixtures"])
def test_the_committed_sums_name_every_component_and_nothing_else(folder: Path) -> None:
    sums = {f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in folder.glob("*.wasm")}
    assert set((folder / "SHA256SUMS").read_text().splitlines()) == sums


def test_every_component_is_known_here() -> None:
    assert set(PATHS) == set(IMPORTS)


@pytest.mark.parametrize("name", IMPORTS)
def test_a_component_imports_only_what_it_calls(name: str, providers: Providers) -> None:
    assert providers.imports(PATHS[name]) == IMPORTS[name]


@pytest.mark.parametrize("name", IMPORTS)
def test_a_component_exports_run_and_nothing_else(name: str, providers: Providers) -> None:
    assert set(providers.component(PATHS[name]).type.exports(providers.engine)) == {"run"}


@pytest.mark.parametrize("name", IMPORTS)
def test_a_component_holds_no_wasi_and_no_path_of_the_machine_that_built_it(name: str) -> None:
    data = PATHS[name].read_bytes()
    for trace in (b"wasi", b".zig", b"/home", b"/root", b"/tmp", b"site-packages", str(ROOT).encode()):
        assert trace not in data


@pytest.mark.parametrize("name", IMPORTS)
def test_a_component_stays_small(name: str) -> None:
    assert PATHS[name].stat().st_size < 40_000


def test_every_source_has_its_component_and_every_component_its_source() -> None:
    sources = {path.stem for folder in ("builtin", "fixtures") for path in (BUILTIN / "src" / folder).glob("*.zig")}
    assert sources == set(IMPORTS)
