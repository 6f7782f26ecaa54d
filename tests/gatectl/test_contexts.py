"""Which gateway is spoken to, from where that is known, and that no key is ever shown."""

import codecs
import fcntl
import os
import stat
from pathlib import Path

import pytest
from gateway_client.cli.contexts.contexts import Contexts, GatewayContext, load, save
from gateway_client.cli.exits import Failure
from hypothesis import given
from hypothesis import strategies as st

from tests.gatectl.conftest import sound, write_ready
from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway, wait_for
from tests.support.scripted_gateway import scripted_gateway

STATUS = {
    "status": "ok", "version": "1", "uptime_seconds": 1, "actions_registered": 1, "draining": False,
    "in_flight_executions": 0, "dependencies": {},
}  # fmt: skip


def test_first_contact_is_two_commands(gate: Gateway, empty: Gatectl, tmp_path: Path) -> None:
    made = empty.process("context", "from-ready", str(write_ready(gate, tmp_path)))
    assert (made.code, made.out) == (0, f"dev is the current context: {gate.base}\n")
    wait_for(lambda: empty.done("status").out.startswith("status              ok\n"), "a status of ok")
    assert stat.S_IMODE(empty.contexts_file.stat().st_mode) == 0o600
    assert gate.ready["operator"]["key"] not in empty.contexts_file.read_text()


def test_a_ready_line_is_taken_from_a_pipe_and_a_key_without_a_file_is_kept_in_one(
    gate: Gateway, empty: Gatectl, tmp_path: Path
) -> None:
    line = write_ready(gate, tmp_path).read_text().replace('"state_dir": "', '"state_dir": "/nowhere')
    assert empty.process("context", "from-ready", "-", "--name", "piped", stdin=line + "\nmore\n").code == 0
    kept = empty.home / "gatectl" / "piped.key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert empty.done("epoch").out.strip().isdigit()


def test_a_ready_line_is_kept_beside_a_key_file_of_its_name_that_has_another_key(
    gate: Gateway, empty: Gatectl, tmp_path: Path
) -> None:
    line = write_ready(gate, tmp_path).read_text().replace('"state_dir": "', '"state_dir": "/nowhere')
    folder = empty.home / "gatectl"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "prod.key").write_text("key-of-production\n")
    for _ in range(2):
        assert empty.process("context", "from-ready", "-", "--name", "prod", stdin=line).code == 0
    assert (folder / "prod.key").read_text() == "key-of-production\n"
    (kept,) = folder.glob("prod-*.key")
    assert (stat.S_IMODE(kept.stat().st_mode), kept.read_text().strip()) == (0o600, gate.ready["operator"]["key"])
    assert empty.done("epoch").out.strip().isdigit()


def test_a_ready_file_that_is_malformed_or_readable_by_others_is_refused(empty: Gatectl, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text('{"base_url": 1, "key-secret": 2}')
    other.chmod(0o644)
    assert empty.here("context", "from-ready", str(other)).code == 3
    other.chmod(0o600)
    ran = empty.here("context", "from-ready", str(other))
    assert (ran.code, "key-secret" in ran.err) == (2, False)


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "contexts.toml"
    save(file, Contexts("dev", {"dev": GatewayContext("http://127.0.0.1:1")}))
    before = load(file)
    file.write_bytes(codecs.BOM_UTF8 + file.read_bytes())
    assert load(file) == before


def test_flag_before_environment_before_file(gatectl: Gatectl) -> None:
    epochs = [{"GET /v1/admin/epoch": (200, {"current_epoch": one})} for one in (41, 42)]
    with scripted_gateway(epochs[0]) as one, scripted_gateway(epochs[1]) as two:
        there = gatectl.with_environment(GATECTL_ADDRESS=one.url)
        assert there.done("epoch").out == "41\n"
        assert there.done("epoch", "--address", two.url).out == "42\n"
        assert there.done("--address", one.url, "epoch", "--address", two.url).out == "42\n"
        shown = there.done("context", "show", "--json").json
    assert shown["address"] == {"value": one.url, "source": "environment"}
    assert shown["private_key_file"]["source"] == "context dev"


def test_contexts_are_set_used_listed_and_removed(empty: Gatectl, gate: Gateway) -> None:
    keys = [
        "--operator-key-file",
        str(gate.state / "operator.key"),
        "--private-key-file",
        str(gate.state / "operator.pem"),
    ]
    address = ["--address", f"unix://{gate.ready['admin_socket']}", "--public-base-url", gate.base]
    empty.done("context", "set", "sockets", *address, *keys, "--agent-address", f"unix://{gate.ready['client_socket']}")
    empty.done("context", "set", "other", "--address", "http://127.0.0.1:1")
    assert "text_digest" in empty.done("actions").out
    assert sound(empty, "doctor").out.count(" mode 0600") >= 3
    listed = empty.done("context", "list", "--json").json
    assert (listed["current"], sorted(listed["contexts"])) == ("sockets", ["other", "sockets"])
    empty.done("context", "use", "other")
    assert empty.here("status").code == 3  # it names no key
    assert empty.done("status", "--context", "sockets").code == 0
    assert empty.with_environment(GATECTL_CONTEXT="sockets").done("status").code == 0
    empty.done("context", "remove", "other")
    assert empty.here("context", "use", "other").code == 2
    assert empty.here("status").err.startswith("gatectl: no_address: no gateway is named - ")


def test_a_url_of_the_context_does_not_go_with_another_address(gatectl: Gatectl, gate: Gateway) -> None:
    with scripted_gateway({"GET /v1/admin/status": (200, STATUS)}) as server:
        assert gatectl.done("--address", server.url, "status").code == 0
    ran = gatectl.here("--address", f"unix://{gate.ready['admin_socket']}", "status")
    assert ran.code == 0, "another socket of the same gateway keeps the URL"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_context_file_that_others_can_write_is_refused(empty: Gatectl, mode: int) -> None:
    empty.done("context", "set", "x", "--address", "http://127.0.0.1:1")
    empty.contexts_file.chmod(mode)
    ran = empty.here("status")
    assert (ran.code, ran.err.split(":")[1]) == (2, " contexts_file")
    assert "chmod 600" in ran.err


@pytest.mark.parametrize(
    "text", ["x", "current = 1", "[contexts]\na = 1", "[contexts.a]\nkey = 'k'", "[contexts.a]\naddress = 1", "\xff"]
)
def test_a_context_file_that_is_wrong_is_refused_and_never_written_over(empty: Gatectl, text: str) -> None:
    empty.contexts_file.parent.mkdir(parents=True)
    empty.contexts_file.write_text(text, encoding="latin-1")
    for command in (["status"], ["context", "set", "x", "--address", "http://h:1"]):
        ran = empty.here(*command)
        assert (ran.code, "contexts_file" in ran.err) == (2, True)
    assert empty.contexts_file.read_text(encoding="latin-1") == text


def test_keys_come_from_the_credentials_directory_where_none_is_named(gate: Gateway, empty: Gatectl) -> None:
    there = empty.with_environment(CREDENTIALS_DIRECTORY=str(gate.state), GATECTL_ADDRESS=gate.base)
    assert there.done("epoch").code == 0
    assert there.done("context", "show", "--json").json["operator_key_file"]["source"] == "$CREDENTIALS_DIRECTORY"
    named = there.with_environment(GATECTL_OPERATOR_KEY_FILE="$CREDENTIALS_DIRECTORY/none.key")
    assert named.here("epoch").code == 3


def test_a_key_file_that_others_can_read_is_refused_before_anything_is_sent(
    gatectl: Gatectl, gate: Gateway, tmp_path: Path
) -> None:
    loose = tmp_path / "operator.key"
    loose.write_text((gate.state / "operator.key").read_text())
    loose.chmod(0o644)
    with scripted_gateway({}) as server:
        ran = gatectl.here("--address", server.url, "--operator-key-file", str(loose), "status")
    assert (ran.code, server.requests) == (3, [])
    assert f"chmod 600 {loose}" in ran.err


def test_no_key_is_shown_whatever_goes_wrong(gatectl: Gatectl, gate: Gateway) -> None:
    key = gate.ready["operator"]["key"]
    answers = {"GET /v1/admin/status": (403, {"error": key, "message": f"you sent {key}"})}
    with scripted_gateway(answers, X_Trace_Id=key) as server:
        for flags in ([], ["--json"]):
            ran = gatectl.here("--address", server.url, "status", *flags)
            assert key in server.tokens[-1]
            assert key not in ran.out + ran.err
    for command in (["context", "show"], ["context", "list", "--json"], ["doctor", "--json"]):
        assert key not in gatectl.here(*command).out


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=30)


@given(st.dictionaries(NAMES, st.tuples(VALUES, VALUES), max_size=3))
def test_a_written_file_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, found: dict[str, tuple[str, str]]
) -> None:
    contexts = Contexts(
        None, {name: GatewayContext(address=one, operator_key_file=two) for name, (one, two) in found.items()}
    )
    file = tmp_path_factory.getbasetemp() / "written.toml"
    save(file, contexts)
    assert load(file) == contexts


def test_a_link_stays_a_link_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    link = tmp_path / "contexts.toml"
    link.symlink_to(tmp_path / "dotfiles" / "contexts.toml")
    save(link, Contexts("a", {"a": GatewayContext(address="http://h:1")}))
    assert link.is_symlink()
    assert os.listdir(tmp_path / "dotfiles") == ["contexts.toml"]
    link.unlink()
    link.symlink_to("/dev/null")
    with pytest.raises(Failure):
        load(link)


def test_changes_take_turns_and_every_wait_is_bounded(empty: Gatectl) -> None:
    empty.done("context", "set", "x", "--address", "http://127.0.0.1:1")
    with open(empty.contexts_file.with_name("contexts.toml.lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = empty.here("context", "use", "x")
    assert (ran.code, "another gatectl is changing it" in ran.err) == (5, True)


def test_a_socket_without_a_url_says_what_is_missing(empty: Gatectl) -> None:
    for command in (
        ["context", "set", "x", "--address", "unix:///run/x.sock"],
        ["--address", "unix:///run/x.sock", "epoch"],
    ):
        ran = empty.here(*command)
        assert (ran.code, "public_base_url" in ran.err) == (2, True)
    assert not empty.contexts_file.exists()
