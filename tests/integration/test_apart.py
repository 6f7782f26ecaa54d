"""Agents' calls can't write the files that the gateway runs and reads, and its state is closed to other users."""

import os
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.support import checked
from tests.support.gateway import gateway
from tests.support.manifests import example, write_manifests
from workers.cache import Cache

WRITE = {"path": "a", "content": "x"}
ANEW = "a compiled module that was kept is not mapped; the module is compiled anew"


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("apart")
    checked.whole_configuration(folder)
    return folder


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_start_and_a_check_refuse_the_same_overlaps_all_at_once(configuration: Path, command: str) -> None:
    file = configuration / f"overlaps-{command}.toml"
    top = 'files_dir = "keys"\nlisten_http_addr = "0.0.0.0:0"\nunsafe_expose_http = true\n'
    file.write_text(top + (configuration / "gateway.toml").read_text())
    done = checked.gateway(configuration, command, "--config", file.name)
    said = (done.stdout or done.stderr).replace(str(configuration), "ETC")
    assert done.returncode == Exit.CONFIG, said
    for name in ("lease_signing_key_path", "grant_signing_key_path", "receipt_keys_jwks_path"):
        assert f"{name} = ETC/keys/" in said
    assert 'listen_http_addr = "0.0.0.0:0": plain text beyond loopback is not allowed in production.' in said
    assert not (configuration / "state").exists()


def test_a_state_directory_that_others_may_look_into_is_refused_by_a_start_and_left_as_it_is(
    configuration: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o750)
    file = configuration / "open.toml"
    text = (configuration / "gateway.toml").read_text()
    file.write_text(text.replace('state_dir = "state"', f'state_dir = "{tmp_path}"'))
    done = checked.gateway(configuration, "run", "--config", file.name)
    assert done.returncode == Exit.NO_PERMISSION
    assert f"{tmp_path} has mode 0750, and keys lie in it. Run chmod 0700 {tmp_path}, or name another." in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_link_that_appears_among_the_files_leads_no_call_to_the_keys_or_the_modules(tmp_path: Path) -> None:
    write_manifests(tmp_path / "actions", example("file_write", fs={"root": "files/notes"}))
    with gateway(tmp_path, 'manifests_dir = "actions"\n') as gate:
        agent = gate.agent()
        assert agent.execute("file_write", WRITE).status_code == 200
        assert (gate.state / "files" / "notes" / "a").read_text() == "x"
        (gate.state / "files" / "notes").rename(gate.state / "files" / "before")
        for folder in ("modules-cache", "keys"):
            (gate.state / "files" / "notes").symlink_to(f"../{folder}")
            answer = agent.execute("file_write", WRITE)
            assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
            assert not (gate.state / folder / "a").exists()
            (gate.state / "files" / "notes").unlink()


def test_compiled_code_that_was_changed_between_two_starts_is_never_run(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        digest = gate.agent().execute("text_digest", {"text": "x"}).json()["output"]
        manifest = gate.http.get("/v1/actions/text_digest").json()
        state = gate.state
    place = Path(Cache(str(state / "modules-cache")).path(manifest["provider_module_digest"]))
    compiled = place.read_bytes()
    spoilt = bytearray(compiled)
    spoilt[len(spoilt) // 2] ^= 0xFF
    place.write_bytes(spoilt)
    with gateway(tmp_path) as gate:
        assert gate.agent().execute("text_digest", {"text": "x"}).json()["output"] == digest
        assert ANEW in gate.log.read_text()
    assert place.read_bytes() == compiled
