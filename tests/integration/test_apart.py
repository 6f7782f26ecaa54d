"""Agents' calls can't write the files that the gateway runs and reads, and its state is closed to other users."""

from pathlib import Path

from tests.support.gateway import gateway
from tests.support.manifests import example, write_manifests
from workers.cache import Cache

WRITE = {"path": "a", "content": "x"}
ANEW = "a compiled module that was kept is not mapped; the module is compiled anew"


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
