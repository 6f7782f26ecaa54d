"""A `gateway dev` of this user is found without a context; nothing else is."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_client.cli.contexts.running_dev import running_dev

from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway


def test_a_running_dev_gateway_needs_no_context_and_is_spoken_to_over_its_sockets(
    gate: Gateway, empty: Gatectl
) -> None:
    here = empty.with_environment(GATECTL_DEV_STATE_DIR=str(gate.state))
    assert here.done("status").out.startswith("status ")
    done = here.done("execute", "text_digest", "text=12", "--json").json
    assert done["output"]["bytes"] == 2
    shown = here.done("context", "show", "--json").json
    assert shown["address"] == {"value": f"unix://{gate.ready['admin_socket']}", "source": "running dev gateway"}
    assert gate.ready["operator"]["key"] not in json.dumps(shown)


def test_any_gateway_that_is_named_goes_before_it(gate: Gateway, gatectl: Gatectl, empty: Gatectl) -> None:
    there = {"GATECTL_DEV_STATE_DIR": str(gate.state)}
    assert "running dev" not in gatectl.with_environment(**there).done("context", "show").out
    named = empty.with_environment(**there).here("status", "--address", "http://127.0.0.1:9")
    assert (named.code, "no_credential" in named.err) == (3, True)  # its key goes to no other address


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state directory as a dev gateway leaves it while it serves."""
    folder = tmp_path / "gateway-dev"
    folder.mkdir(mode=0o700)
    names = ("client_socket", "admin_socket", "operator_key_file", "private_key_file")
    fields: dict[str, Any] = {name: str(folder / name) for name in names} | {"public_base_url": "http://127.0.0.1:3000"}
    write(folder, fields)
    with socket.socket(socket.AF_UNIX) as client, socket.socket(socket.AF_UNIX) as admin:
        client.bind(fields["client_socket"])
        admin.bind(fields["admin_socket"])
        yield folder


def write(folder: Path, found: Any) -> None:
    file = folder / "running.json"
    file.write_text(json.dumps(found))
    file.chmod(0o600)


def found_in(state: Path) -> bool:
    return running_dev({"XDG_STATE_HOME": str(state.parent)}) is not None


def test_it_is_found_where_gateway_dev_keeps_its_state(state: Path) -> None:
    assert found_in(state)
    assert running_dev({"HOME": str(state.parent)}) is None


@pytest.mark.parametrize("name", ["running.json", ""])
def test_a_folder_or_file_that_others_may_read_is_no_gateway(state: Path, name: str) -> None:
    (state / name).chmod(0o755)
    assert not found_in(state)


@pytest.mark.parametrize("name", ["admin_socket", "client_socket"])
def test_without_its_sockets_it_does_not_run(state: Path, name: str) -> None:
    (state / name).unlink()
    assert not found_in(state)
    (state / name).touch()
    assert not found_in(state)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
@pytest.mark.parametrize("name", ["running.json", "", "admin_socket"])
def test_a_folder_of_another_user_is_not_taken_for_a_gateway(state: Path, name: str) -> None:
    os.chown(state / name, 65534, 65534)
    assert not found_in(state)


@pytest.mark.parametrize("found", [[], {}, {"admin_socket": 1}, "x", None])
def test_a_file_of_another_form_is_no_gateway(state: Path, found: Any) -> None:
    write(state, found)
    assert not found_in(state)
