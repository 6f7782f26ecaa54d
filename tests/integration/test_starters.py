"""Every starter of `gateway new action --from` as its tests say: checked, served, called, judged."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from frontend.action_tests.form import ActionTest, read_tests
from frontend.files.problems import Report
from tests.support.gateway import PROGRAM, START_SECONDS, Gateway, gateway
from tests.support.upstream import Upstream

STARTERS = Path(__file__).parents[2] / "contrib" / "templates" / "starters"
NAMES = sorted(path.name for path in STARTERS.iterdir())


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PROGRAM, *words], check=False, capture_output=True, text=True, timeout=START_SECONDS)


def cases_of(name: str) -> list[ActionTest]:
    report = Report(name)
    tests = read_tests(STARTERS / name / "test.yaml", report)
    assert report.problems == []
    return tests


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an action of each starter, named like it."""
    made: Path = tmp_path_factory.mktemp("starters")
    for name in NAMES:
        done = command("new", "action", name, "--from", name, "--dir", str(made))
        assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def gate(folder: Path, up: Upstream) -> Iterator[Gateway]:
    """Serves them all. Their hosts are the test's upstream, without TLS; time limits are those of no hurry."""
    actions, hosts, names = folder / "played", set[str](), set[str]()
    actions.mkdir()
    for name in NAMES:
        manifest = yaml.safe_load((folder / "actions" / f"{name}.yaml").read_text())
        url = manifest["template"]["url_template"]
        manifest["template"]["url_template"] = url.replace("https://", "http://")
        manifest["resource_limits"] = {"timeout_seconds": 300}
        (actions / f"{name}.yaml").write_text(yaml.safe_dump(manifest))
        hosts.add(str(urlsplit(url).hostname))
        names |= {secret["name"] for secret in manifest["secrets"]}
    secrets = folder / "secrets.json"
    secrets.touch(0o600)
    secrets.write_text(json.dumps({name: f"secret-of-{name}" for name in names}))
    resolved = ", ".join(f'"{host}" = "{up.address}"' for host in sorted(hosts))
    config = f'manifests_dir = "{actions}"\npolicy_dir = "{folder / "policy"}"\n[secrets]\nfile = "{secrets}"\n'
    with gateway(folder, f"{config}[egress]\nunsafe_resolve = {{{resolved}}}\n") as running:
        yield running


def test_the_list_names_each_starter_with_what_it_does() -> None:
    listed = command("new", "action", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == NAMES
    assert all(line.endswith(".") for line in listed)


def test_check_accepts_every_starter_as_it_is(folder: Path) -> None:
    done = command("check", "--dev", "--config", str(folder / "gateway.toml"))
    assert done.returncode == 0, done.stderr
    assert f"no problems, {len(NAMES)} actions" in done.stdout


def test_a_starter_is_written_over_no_file(folder: Path) -> None:
    manifest = folder / "actions" / f"{NAMES[0]}.yaml"
    before = manifest.read_bytes()
    refused = command("new", "action", NAMES[0], "--from", NAMES[1], "--dir", str(folder))
    assert (refused.returncode, manifest.read_bytes()) == (78, before)
    unknown = command("new", "action", "other", "--from", "none", "--dir", str(folder))
    assert (unknown.returncode, (folder / "actions" / "other.yaml").exists()) == (2, False)


@pytest.mark.parametrize(
    ("name", "test"), [pytest.param(name, one, id=f"{name}: {one.name}") for name in NAMES for one in cases_of(name)]
)
def test_a_starter_does_what_its_tests_say(gate: Gateway, up: Upstream, name: str, test: ActionTest) -> None:
    agent, operator, expected = gate.agent(), gate.operator(), test.expect
    up.answers.clear()
    if test.upstream is not None:
        url = expected.sends.get("url") or cases_of(name)[0].expect.sends["url"]
        up.answers[urlsplit(url).path] = (test.upstream.status, test.upstream.body)
    answer = agent.execute(name, test.request)
    if expected.error:
        assert (answer.status_code, answer.json()["error"]) == (422, expected.error)
        return
    if expected.decision == "hold":
        assert answer.status_code == 202, answer.text
        answer = operator.post(f"/v1/approvals/{answer.json()['approval_id']}/approve")
    assert answer.status_code == 200, answer.text
    if test.outcome:
        assert answer.json()["verification_outcome"] == test.outcome
    compare_sent(up, expected.sends)


def compare_sent(up: Upstream, sends: dict[str, Any]) -> None:
    """The last request that arrived has these members."""
    sent = up.seen[-1]
    if "url" in sends:
        assert f"{sent.method} {sent.path}" == f"{sends['method']} {urlsplit(sends['url']).path}"
        assert sent.headers["host"] == urlsplit(sends["url"]).hostname
    if "body" in sends:
        assert (sent.body.decode() if isinstance(sends["body"], str) else sent.json()) == sends["body"]
    assert "secret-of-" in sent.headers["authorization"] or sent.headers["authorization"].startswith("Basic ")
