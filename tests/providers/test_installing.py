"""install.sh of a provider of one's own: the module by its digest, pinned and trusted; the one before it goes."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.commands.create.new_provider import new_provider
from tests.support.manifests import PROVIDERS

GATEWAY = Path(sys.executable).with_name("gateway")
FIRST, SECOND = ((PROVIDERS / f"{name}.wasm").read_bytes() for name in ("text_digest", "echo"))
TRUSTED = "trusted_modules.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_provider(tmp_path, "greet", "zig")
    return tmp_path


def install(folder: Path, module: bytes) -> "subprocess.CompletedProcess[str]":
    provider = folder / "providers" / "greet"
    (provider / "provider.wasm").write_bytes(module)
    return subprocess.run(
        ["sh", "install.sh", "../../actions"], cwd=provider, capture_output=True, text=True, check=False, timeout=60
    )


def digest(module: bytes) -> str:
    return hashlib.sha256(module).hexdigest()


def modules(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "actions" / "modules").iterdir())


def test_what_was_built_is_pinned_trusted_and_accepted(folder: Path) -> None:
    done = install(folder, FIRST)
    assert done.returncode == 0, done.stderr
    assert f"runs sha256:{digest(FIRST)}" in done.stderr
    assert modules(folder) == [f"{digest(FIRST)}.wasm"]
    assert not (folder / "providers" / "greet" / "greet.yaml").exists()
    checked = subprocess.run(
        [GATEWAY, "check", "--dev", "--config", folder / "gateway.toml"], capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert (checked.returncode, "no problems, 1 action" in checked.stdout) == (0, True), checked.stdout + checked.stderr


def test_the_next_build_takes_the_place_of_the_last_and_leaves_the_rest(folder: Path) -> None:
    assert install(folder, FIRST).returncode == 0
    manifest, trusted = folder / "actions" / "greet.yaml", folder / "actions" / TRUSTED
    manifest.write_text(manifest.read_text().replace("risk_level: low", "risk_level: high"))
    other = f'  "sha256:{"1" * 64}": theirs\n'
    trusted.write_text(trusted.read_text() + other)
    for _ in range(2):
        assert install(folder, SECOND).returncode == 0
    assert modules(folder) == [f"{digest(SECOND)}.wasm"]
    assert trusted.read_text() == f'digests:\n{other}  "sha256:{digest(SECOND)}": greet, built in providers/greet\n'
    assert f"sha256:{digest(SECOND)}\n" in manifest.read_text()
    assert "risk_level: high" in manifest.read_text()


def test_a_module_that_another_action_runs_stays(folder: Path) -> None:
    assert install(folder, FIRST).returncode == 0
    manifest = folder / "actions" / "greet.yaml"
    (folder / "actions" / "twin.yaml").write_text(manifest.read_text().replace("action_id: greet", "action_id: twin"))
    assert install(folder, SECOND).returncode == 0
    assert modules(folder) == sorted([f"{digest(FIRST)}.wasm", f"{digest(SECOND)}.wasm"])
    assert digest(FIRST) in (folder / "actions" / TRUSTED).read_text()


@pytest.mark.parametrize(
    ("name", "text"), [(TRUSTED, "digests: {}\n"), ("greet.yaml", "provider_module_digest: builtin:echo\n")]
)
def test_a_file_of_another_form_is_named_and_left_as_it_was(folder: Path, name: str, text: str) -> None:
    assert install(folder, FIRST).returncode == 0
    file = folder / "actions" / name
    file.write_text(text)
    done = install(folder, SECOND)
    assert (done.returncode, name in done.stderr, digest(SECOND) in done.stderr) == (1, True, True)
    assert file.read_text() == text
    assert modules(folder) == [f"{digest(FIRST)}.wasm"]
