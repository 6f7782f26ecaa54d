"""SIGHUP: manifests and policy are read again and swapped whole, or not at all, and evidence says which it was."""

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.background import Background, HeldCall
from tests.support.gateway import Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import (
    PROVIDERS,
    example,
    open_policy,
    patient,
    put_module,
    trust,
    write_manifests,
)
from tests.support.processes import family
from tests.support.supervised import told
from tests.support.upstream import Upstream


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the manifests (`actions`) and the policy (`policy`) of `gate`."""
    root: Path = tmp_path_factory.mktemp("reloads")
    patient(root / "actions")
    open_policy(root / "policy", "more", version="v1")
    return root


@pytest.fixture(scope="module")
def gate(up: Upstream, folder: Path) -> Iterator[Gateway]:
    """A gateway whose manifests and policy may be changed; a test that spoils them mends them."""
    more = f'manifests_dir = "{folder / "actions"}"\nlease_ttl_seconds = 3600\npolicy_dir = "{folder / "policy"}"'
    more = f"front_processes = 2\n{more}\n[limits]\nworker_wait_seconds = 300\n"
    with gateway(folder, config_for(up.address, more)) as running:
        yield running


def reload(gate: Gateway) -> dict[str, Any]:
    """Send SIGHUP; returns the AdminReload event that it leaves, once every front has it in force, or none."""
    before, ends = gate.events(event_type="AdminReload", limit=1), reloads_ended(gate)
    gate.process.send_signal(signal.SIGHUP)
    wait_for(lambda: reloads_ended(gate) > ends, "the end of the reload")

    def found() -> list[dict[str, Any]] | None:
        events = gate.events(event_type="AdminReload", limit=1)
        return events if events != before else None

    event: dict[str, Any] = wait_for(found, "the event of the reload")[0]
    return event


def reloads_ended(gate: Gateway) -> int:
    """How many have, however they went."""
    log = gate.log.read_text()
    return log.count('"message":"reloaded"') + log.count('"message":"reload failed, the earlier state stays active"')


def warned(gate: Gateway, message: str) -> list[dict[str, Any]]:
    """Log lines with this message: one of each front."""
    return told(gate.log.read_text(), message)


def whole_family(gate: Gateway, fronts: int) -> dict[int, str]:
    """Every process, once each has its name: notary and template, and each front with its policy process and three
    workers."""

    def named() -> dict[int, str] | None:
        names = family(gate.process.pid)
        return names if len(names) == 2 + 5 * fronts else None

    return dict(wait_for(named, "the names of all processes"))


def version_of(gate: Gateway, action_id: str) -> str:
    return str(gate.http.get(f"/v1/actions/{action_id}").json()["version"])


def test_a_changed_manifest_is_in_force_after_a_hangup(gate: Gateway, folder: Path) -> None:
    write_manifests(folder / "actions", example("text_digest", version="2.0.0", description="anew"))
    before = whole_family(gate, 2)
    assert reload(gate)["decision"] == "allow"
    assert version_of(gate, "text_digest") == "2.0.0"
    answer = gate.agent().execute("text_digest", {"text": "x"})
    assert gate.events(trace_id=answer.json()["trace_id"])[0]["action_version"] == "2.0.0"
    assert family(gate.process.pid) == before  # nothing was restarted for it


ENDLESS = """package gateway

import rego.v1

decision := {} if count([1 | some x in numbers.range(1, 9000); some y in numbers.range(1, 9000); x == y + 0.5]) == 1
"""
BROKEN: list[tuple[str, Callable[[Path], None], str]] = [
    ("a manifest with an unknown field", lambda f: _append(f / "actions" / "spin.yaml", "fule: 1\n"), "fule"),
    ("two manifests of one action", lambda f: _copy(f / "actions", "spin.yaml", "spun.yaml"), "spun.yaml"),
    ("a policy that does not compile", lambda f: _append(f / "policy" / "gateway.rego", "x := {\n"), "/gateway.rego:"),
    ("a policy that fails when it is asked", lambda f: _decides(f, "1 / count(input.targets)"), "divide by zero"),
    (  # it is ended by its own alarm of processor time, or on a busy machine by the time that a load may take
        "a policy without end",
        lambda f: _write(f / "policy" / "gateway.rego", ENDLESS),
        "the policy process was lost|it did not compile within",
    ),
    ("policy data that is no JSON", lambda f: _write(f / "policy" / "data.json", "{"), "data.json"),
    ("no policy", lambda f: (f / "policy" / "gateway.rego").unlink(), "rego"),
    ("no list of trusted modules", lambda f: _dangle(f / "actions" / "trusted_modules.yaml"), "trusted_modules.yaml"),
]  # fmt: skip


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def _replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def _dangle(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere")


def _copy(folder: Path, old: str, new: str) -> None:
    (folder / new).write_text((folder / old).read_text())


def _decides(folder: Path, value: str) -> None:
    _write(folder / "policy" / "gateway.rego", f"package gateway\n\nimport rego.v1\n\ndecision := {value}\n")


@pytest.mark.parametrize(("spoil", "word"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_reload_that_fails_leaves_everything_as_it_was_and_says_why(
    gate: Gateway, folder: Path, spoil: Callable[[Path], None], word: str
) -> None:
    before = set(folder.glob("*/*"))
    whole = {path: path.read_bytes() for path in before if path.suffix in (".yaml", ".rego", ".json")}
    version = version_of(gate, "http_fetch")
    policy = gate.operator().get("/v1/admin/status").json()["policy_version"]
    try:
        # Half of the new configuration is in order, and must not come into force either.
        write_manifests(folder / "actions", example("http_fetch", version="9.9.9"))
        _replace(folder / "policy" / "data.json", policy, "v9")
        spoil(folder)
        event = reload(gate)
        assert (event["decision"], event["error_code"]) == ("error", "reload_failed")
        assert any(one in event["reason"] for one in word.split("|"))
        assert version_of(gate, "http_fetch") == version
        assert gate.operator().get("/v1/admin/status").json()["policy_version"] == policy
        # A policy may have cost its process, whose successor takes its time to come.
        wait_for(lambda: gate.http.get("/readyz").json()["status"] == "ready", "a policy process")
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    finally:
        for path in folder.glob("*/*"):
            if path.is_symlink() or (path not in before and not path.is_dir()):
                path.unlink()
            elif path not in before:
                shutil.rmtree(path)
        for path, data in whole.items():
            path.write_bytes(data)
    assert reload(gate)["decision"] == "allow"


def test_a_template_that_sends_what_it_does_not_mean_or_where_it_may_not_is_told_by_a_reload(
    gate: Gateway, folder: Path
) -> None:
    file = folder / "actions" / "elsewhere.yaml"
    elsewhere = example("http_post", action_id="elsewhere", egress={"allowed_domains": ["other.example"]})
    write_manifests(folder / "actions", elsewhere)
    try:
        assert reload(gate)["decision"] == "allow"
        said = warned(gate, "calls of an action will wait for a person")[0]
        assert (said["file"], said["field"]) == (str(file), "template.url_template")
        assert "url_template" in file.read_text().splitlines()[said["line"] - 1]
        file.write_text(file.read_text().replace("'{message}'", "{message}"))
        event = reload(gate)
        assert event["decision"] == "error"
        line = next(at for at, text in enumerate(file.read_text().splitlines(), 1) if "message: {message}" in text)
        assert f"{file}:{line}  template.body_template.message holds braces without quotes" in event["reason"]
    finally:
        file.unlink()
    assert reload(gate)["decision"] == "allow"


def test_a_module_that_comes_with_a_reload_runs_and_calls_under_way_end_well(
    gate: Gateway, folder: Path, up: Upstream
) -> None:
    agent = gate.agent()
    call = HeldCall(up, agent)
    # The same provider with a custom section at its end: other bytes, so another module.
    data = (PROVIDERS / "text_digest.wasm").read_bytes() + b"\x00\x05\x04test"
    digest = put_module(folder / "actions", data)
    manifest = example("text_digest", action_id="more", provider_module_digest=digest)
    write_manifests(folder / "actions", manifest)
    assert reload(gate)["decision"] == "allow"
    answer = gate.agent().execute("more", {"text": "x"})
    assert (answer.status_code, answer.json()["error"]) == (403, "action_not_registered")
    said = warned(gate, "calls of an action will be refused")[0]
    assert (said["file"], said["field"]) == (str(folder / "actions" / "more.yaml"), "provider_module_digest")
    assert (folder / "actions" / "more.yaml").read_text().splitlines()[said["line"] - 1].endswith(digest)
    trust(folder / "actions", digest)
    assert reload(gate)["decision"] == "allow"
    agent_after = gate.agent()
    answer = agent_after.execute("more", {"text": "x"})
    assert answer.status_code == 200, answer.text
    receipt = agent_after.get(f"/v1/receipts/{answer.json()['receipt_id']}").json()
    assert receipt["provider_module_digest"] == digest
    assert call.release().status() == 200


def test_a_removed_action_is_gone_and_its_held_call_executes_the_stored_plan(gate: Gateway, folder: Path) -> None:
    digest, held, agent = held_by_module_of_its_own(gate, folder, b"held")
    (folder / "actions" / "more.yaml").unlink()
    (folder / "actions" / "modules" / f"{digest.removeprefix('sha256:')}.wasm").unlink()
    assert reload(gate)["decision"] == "allow"
    assert agent.execute("more", {"text": "x"}).json() == {"error": "action_not_found"}
    template = gate.child("template")
    template.kill()
    wait_for(lambda: [one for one in gate.children("template") if one.pid != template.pid], "the next template")
    answer = gate.operator().post(f"/v1/approvals/{held}/approve")
    assert (answer.status_code, answer.json().get("output")) == (200, {"table": "x"})
    receipt = agent.get(f"/v1/receipts/{answer.json()['receipt_id']}").json()
    assert receipt["provider_module_digest"] == digest


def test_a_held_call_is_shown_with_the_description_that_its_action_had_then(gate: Gateway, folder: Path) -> None:
    agent, operator = gate.agent(), gate.operator()

    def held_description(amount: int) -> tuple[str, str]:
        answer = agent.execute("payment_transfer", {"to": "acct-9", "amount_cents": amount, "currency": "EUR"})
        path = f"/v1/approvals/{answer.json()['approval_id']}"
        return path, operator.get(path).json()["description"]

    manifest = folder / "actions" / "payment_transfer.yaml"
    before = manifest.read_text()
    path, description = held_description(1)
    assert description == example("payment_transfer")["description"]
    write_manifests(folder / "actions", example("payment_transfer", description="Something else."))
    try:
        assert reload(gate)["decision"] == "allow"
        assert operator.get(path).json()["description"] == description
        assert held_description(2)[1] == "Something else."
    finally:
        manifest.write_text(before)
        reload(gate)


def test_a_held_call_whose_digest_was_withdrawn_is_refused_and_given_back(gate: Gateway, folder: Path) -> None:
    digest, held, agent = held_by_module_of_its_own(gate, folder, b"gone")
    (folder / "actions" / "more.yaml").unlink()
    trust(folder / "actions", *(one for one in _trusted(folder) if one != digest))
    assert reload(gate)["decision"] == "allow"
    answer = gate.operator().post(f"/v1/approvals/{held}/approve")
    assert (answer.status_code, answer.json()["error"]) == (409, "plan_integrity")
    polled = agent.get(f"/v1/approvals/{held}/poll").json()
    assert (polled["state"], polled["outcome"], polled["reason"]) == ("approved", "failed", "plan_integrity")
    assert agent.execute("text_digest", {"text": "the call was given back"}).status_code == 200


def held_by_module_of_its_own(gate: Gateway, folder: Path, mark: bytes) -> tuple[str, str, Bearer]:
    """A held call of the action `more`, whose module is of these bytes alone: digest, approval id and agent."""
    data = (PROVIDERS / "echo.wasm").read_bytes() + b"\x00\x05\x04" + mark
    digest = put_module(folder / "actions", data)
    trust(folder / "actions", digest, *_trusted(folder))
    manifest = example("forbidden_export", action_id="more", provider_module_digest=digest)
    write_manifests(folder / "actions", manifest)
    assert reload(gate)["decision"] == "allow"
    agent = gate.agent(max_calls=1)
    held = agent.execute("more", {"table": "x"})
    assert held.status_code == 202, held.text
    return digest, held.json()["approval_id"], agent


def _trusted(folder: Path) -> list[str]:
    path = folder / "actions" / "trusted_modules.yaml"
    return list(yaml.safe_load(path.read_text())["digests"]) if path.exists() else []


def test_many_hangups_at_once_are_all_answered(gate: Gateway, folder: Path) -> None:
    before = gate.child("front").pid
    for _ in range(30):
        gate.process.send_signal(signal.SIGHUP)
    assert reload(gate)["decision"] == "allow"
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    assert gate.child("front").pid == before


def test_operators_who_reload_at_once_are_all_answered_and_each_leaves_its_event(gate: Gateway) -> None:
    mine = {"event_type": "AdminReload", "principal": "operator:dev", "limit": 1000}
    before = len(gate.events(**mine))
    calls = [Background(lambda: gate.operator().post("/v1/admin/reload")) for _ in range(6)]
    assert [call.status() for call in calls] == [200] * 6
    events = gate.events(**mine)
    assert len(events) - before == 6
    assert len({event["operator_proof_jti"] for event in events[:6]}) == 6
    assert {event["identity_method"] for event in events[:6]} == {"operator"}
    assert all(event["operator_sender_binding"] for event in events[:6])
