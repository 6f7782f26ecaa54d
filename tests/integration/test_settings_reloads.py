"""Operators and principals of the configuration file follow a reload, whichever front is asked; other settings wait for
a restart, by name."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.integration.test_reloads import whole_family
from tests.integration.test_two_fronts import samples
from tests.support.fronts import clients_of
from tests.support.gateway import START_SECONDS, Bearer, Gateway, Prover, config_for, gateway, wait_for
from tests.support.manifests import open_policy, patient
from tests.support.processes import GATEWAY, family
from tests.support.production import Credentials, make_keys, mapping
from tests.support.supervised import told
from tests.support.upstream import Upstream

RELOAD = "/v1/admin/reload"
REFUSED = (401, "invalid_operator_token")
WELL = (200, "")
LIMITED = (429, "rate_limit_exceeded")
NOT_RELOADED = "the configuration was not reloaded; the previous one stays active"


@dataclass
class Place:
    """A gateway, the configuration file that tests rewrite, and a client for each front. `ann` asks for reloads; `bob`
    comes and goes."""

    gate: Gateway
    folder: Path
    first: str
    made: Credentials
    clients: list[httpx.Client]

    def write(self, *, bob: bool = False, principal: str | None = "agent", tables: str = "") -> None:
        """The file anew. `principal` is who the user of this test acts as."""
        (self.folder / "gateway.toml").write_text(
            self.first + tables + (mapping(os.geteuid(), principal) if principal else "")
            + (self.made.operators if bob else "")
        )  # fmt: skip

    def reload(self) -> dict[str, Any]:
        answer = self.gate.operator().post(RELOAD)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def bob(self, client: httpx.Client) -> Bearer:
        key = serialization.load_pem_private_key(Path(self.made.private_key_file).read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return Bearer(client, self.gate.base, self.made.api_key, Prover(key))

    def bobs(self) -> list[tuple[int, str]]:
        """The status of each front's answer to bob."""
        answers = [self.bob(client).get("/v1/admin/epoch") for client in self.clients]
        return [(answer.status_code, answer.json().get("error", "")) for answer in answers]

    def leases(self) -> set[tuple[int, str]]:
        """The fronts' answers to the user of this test, who asks more often than there are fronts, and more often than
        a user without an identity may."""
        body = {"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}
        answers = [self.over_socket().post("/v1/leases", json=body) for _ in range(6)]
        return {(answer.status_code, answer.json().get("error", "")) for answer in answers} - {LIMITED}

    def over_socket(self) -> httpx.Client:
        """A connection of its own, that any front may take."""
        return self.gate.over("client_socket")

    def event(self) -> dict[str, Any]:
        return self.gate.events(event_type="AdminReload", limit=1)[0]

    def check(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Edit the file as a person does, with the port that the gateway got as a flag at its start."""
        return subprocess.run(
            [
                GATEWAY, "check", "--dev", "--state-dir", str(self.folder / "state"), "--config",
                str(self.folder / "gateway.toml"), *options,
            ],
            capture_output=True, text=True, timeout=START_SECONDS, stdin=subprocess.DEVNULL, check=False,
            env=os.environ | {"GATEWAY__LISTEN_HTTP_ADDR": "127.0.0.1:0"},
        )  # fmt: skip


@pytest.fixture(scope="module")
def place(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("settings")
    made = make_keys(folder / "bob", "bob")
    top = f"front_processes = 2\n{patient(folder / 'actions')}"
    top += f'policy_dir = "{open_policy(folder / "policy", "more")}"\n'
    first = config_for(up.address, top) + '\n[identity]\nprovider = "peercred"\n\n'
    with gateway(folder, first + mapping(os.geteuid(), "agent")) as running, clients_of(running) as clients:
        yield Place(running, folder, first, made, clients)


def test_an_operator_of_the_file_is_one_once_a_reload_is_answered_and_none_once_the_next_one_is(place: Place) -> None:
    before = whole_family(place.gate, len(place.clients))
    assert set(place.bobs()) == {REFUSED}
    place.write(bob=True)
    assert place.reload()["changed"] == ["operators"]
    assert set(place.bobs()) == {WELL}
    assert place.event()["change"] == {"settings": ["operators"]}
    place.write()
    answer = place.reload()
    assert (answer["changed"], answer["needs_restart"]) == (["operators"], [])
    assert set(place.bobs()) == {REFUSED}
    assert family(place.gate.process.pid) == before  # nothing was restarted for it


def test_an_operator_that_asks_for_the_reload_that_removes_it_is_answered_and_is_out(place: Place) -> None:
    place.write(bob=True)
    place.reload()
    place.write()
    answer = place.bob(place.clients[-1]).post(RELOAD)
    assert (answer.status_code, answer.json()["changed"]) == (200, ["operators"])
    assert set(place.bobs()) == {REFUSED}


def test_whom_a_user_acts_as_follows_a_reload(place: Place) -> None:
    place.write(principal="somebody")
    assert place.reload()["changed"] == ["identity.peercred.principals"]
    assert place.leases() == {WELL}
    assert {one["principal"] for one in place.gate.events(event_type="LeaseIssued", limit=6)} == {"somebody"}
    place.write(principal=None)
    place.reload()
    assert place.leases() == {(403, "identity_forbidden")}
    place.write()
    place.reload()
    assert place.leases() == {WELL}


def test_a_file_that_will_not_do_changes_nothing_and_tells_all_that_is_wrong_with_it_and_with_others(
    place: Place,
) -> None:
    place.write(bob=True)
    place.reload()
    manifest = place.folder / "actions" / "spin.yaml"
    whole = manifest.read_text()
    try:
        manifest.write_text(whole + "fule: 1\n")
        place.write(principal="somebody", tables="[limits]\nmax_in_flite = 1\nmax_connections = 0\n")
        answer = place.gate.operator().post(RELOAD)
        assert (answer.status_code, answer.json()["error"]) == (500, "reload_failed")
        event = place.event()
        assert (event["decision"], "change" in event) == ("error", False)
        wrong = ["fule", "max_in_flite", "limits.max_connections"]
        assert wrong[0] in event["reason"]
        (problems, *_) = [line["problems"] for line in told(place.gate.log.read_text(), NOT_RELOADED)]
        assert [part for part in wrong if any(part in problem for problem in problems)] == wrong
        assert set(place.bobs()) == {WELL}
    finally:
        manifest.write_text(whole)
        place.write()
    assert place.reload()["changed"] == ["operators"]


def test_a_manifest_that_will_not_do_keeps_an_operator_in(place: Place) -> None:
    place.write(bob=True)
    place.reload()
    manifest = place.folder / "actions" / "spin.yaml"
    whole = manifest.read_text()
    try:
        manifest.write_text(whole + "fule: 1\n")
        place.write()
        assert place.gate.operator().post(RELOAD).status_code == 500
        assert set(place.bobs()) == {WELL}
    finally:
        manifest.write_text(whole)
    place.reload()
    assert set(place.bobs()) == {REFUSED}


def test_settings_that_wait_for_a_restart_are_named_without_their_values(place: Place) -> None:
    hidden = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    webhook = f'[[webhooks]]\nname = "w"\nurl = "https://hooks.gateway.test/x"\nsecret = "{hidden}"\n'
    named = ["compat.actions_envelope", "limits.max_in_flight"]
    place.write(bob=True, tables=f"[compat]\nactions_envelope = true\n[limits]\nmax_in_flight = 99\n{webhook}")
    looked = place.check("--against-running")
    assert looked.returncode == 0, looked.stdout
    needed = "not in force in the running gateway: a reload is needed for operators, webhooks; a restart is needed for "
    assert needed + ", ".join(named) in looked.stdout
    as_json = json.loads(place.check("--against-running", "--json").stdout)
    assert as_json["against_running"] == {"reload": ["operators", "webhooks"], "restart": named}
    answer = place.reload()
    assert (answer["changed"], answer["needs_restart"]) == (["operators", "webhooks"], named)
    assert place.event()["change"] == {"settings": ["operators", "webhooks"], "needs_restart": named}
    log = place.gate.log.read_text()
    assert '"message":"settings have changed that need a restart"' in log
    kept = (place.folder / "state" / "in-force.json").read_text()
    assert all(hidden not in text for text in (log, looked.stdout, kept, json.dumps(place.event())))
    as_json = json.loads(place.check("--against-running", "--json").stdout)
    assert as_json["against_running"] == {"reload": [], "restart": named}
    place.write()
    assert place.reload()["needs_restart"] == []
    assert "the running gateway has these settings in force" in place.check("--against-running").stdout


def test_a_front_that_follows_another_has_the_operators_of_the_last_reload(place: Place) -> None:
    place.write(bob=True)
    place.reload()
    place.write()
    place.reload()
    old = place.gate.child("front 1")
    os.kill(old.pid, signal.SIGKILL)
    wait_for(lambda: [one for one in place.gate.children("front 1") if one.pid != old.pid], "another front")
    wait_for(place.gate.is_ready, "a front that serves")
    wait_for(lambda: samples(place.gate.operator())["gate_fronts"] == 2, "two fronts that serve")
    with clients_of(place.gate) as clients:
        assert {place.bob(one).get("/v1/admin/epoch").status_code for one in clients} == {401}


def test_a_check_against_a_gateway_that_does_not_run_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [GATEWAY, "check", "--dev", "--state-dir", str(tmp_path), "--against-running"],
        capture_output=True, text=True, timeout=START_SECONDS, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 69
    assert f"no gateway runs with the state directory {tmp_path}" in done.stderr
