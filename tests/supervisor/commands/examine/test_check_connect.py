"""`gateway check` of a configuration whose policy engine is an OPA; `--connect` reports the dependencies that do not
answer."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.supervisor.test_cli import here
from tests.support.checked import whole_configuration
from tests.support.hosts_file import can_change_hosts
from tests.support.manifests import example, write_manifests
from tests.support.opa import opa
from tests.support.ports import closed_port
from tests.support.processes import GATEWAY


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    whole_configuration(made)
    return made


@pytest.fixture(scope="module")
def check(folder: Path) -> Callable[..., tuple[int, str]]:
    """Check the configuration with these lines at its top."""
    file = folder / "gateway.toml"
    text = file.read_text()

    def checked(lines: str, *arguments: str) -> tuple[int, str]:
        file.write_text(f"{lines}\n{text}")
        done = here(folder, "check", "--config", "gateway.toml", *arguments)
        assert done.stderr == ""
        return done.returncode, done.stdout

    return checked


AUTHZ = """package system.authz

import rego.v1

default allow := false

allow if input.identity == "letmein"

allow if input.path == ["health"]
"""


def test_an_opa_is_asked_with_the_token_and_a_missing_token_is_reported(
    check: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("letmein\n")
    token.chmod(0o600)
    (tmp_path / "authz.rego").write_text(AUTHZ)
    options = ("--authentication=token", "--authorization=basic")
    with opa(tmp_path, (str(tmp_path / "authz.rego"),), options, is_tcp=True) as running:
        code, said = check(f'opa_url = "{running.url}"\nopa_token_file = "{token}"', "--connect")
        assert (code, said.count("no problems")) == (0, 1), said
        code, said = check(f'opa_url = "{running.url}"', "--connect")
        assert code == Exit.UNAVAILABLE
        assert "gateway.toml:1  opa_url: OPA answered 401" in said
        token.chmod(0o644)
        code, said = check(f'opa_url = "{running.url}"\nopa_token_file = "{token}"', "--connect")
        assert "mode 0644 lets others in" in said


def test_a_silent_dependency_is_a_problem_at_its_setting(check: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    with closed_port() as port:
        lines = f'opa_url = "unix://{tmp_path}/nobody.sock"\negress_proxy_url = "http://127.0.0.1:{port}"'
        code, said = check(lines)
        assert (code, said.count("is not used: the OPA of opa_url has the rules")) == (0, 1)
        code, said = check(lines, "--connect")
    assert code == Exit.UNAVAILABLE
    assert "gateway.toml:1  opa_url: no connection to OPA" in said
    assert "gateway.toml:2  egress_proxy_url: the proxy does not answer" in said
    assert "2 problems, nothing started." in said


@pytest.mark.skipif(not can_change_hosts(), reason="needs a mount namespace, for a hosts file of its own")
def test_an_allowed_domain_that_leads_to_a_private_address_is_warned_of_by_name(tmp_path: Path) -> None:
    whole_configuration(tmp_path)
    names = ["inside.gateway.test", "outside.gateway.test", "both.gateway.test", "nowhere.gateway.invalid"]
    manifest = example("http_fetch", action_id="inward", egress={"allowed_domains": ["upstream.gateway.test", *names]})
    write_manifests(tmp_path / "actions", manifest)
    hosts = "10.1.2.3 inside.gateway.test\n8.8.8.8 outside.gateway.test\n10.1.2.3 both.gateway.test\n"
    (tmp_path / "hosts").write_text(f"{hosts}8.8.8.8 both.gateway.test\n8.8.8.8 upstream.gateway.test\n")
    script = f"mount --bind hosts /etc/hosts && exec {GATEWAY} check --config gateway.toml"
    told = {}
    for more in ("", " --connect"):
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script + more], cwd=tmp_path, capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        told[more] = done.stdout
    assert [one.count("the private address") for one in told.values()] == [0, 1]
    line = (tmp_path / "actions" / "inward.yaml").read_text().splitlines().index("  - inside.gateway.test") + 1
    said = f"inward.yaml:{line}  warning: egress.allowed_domains: inside.gateway.test leads to the private address "
    assert f"{said}10.1.2.3: calls will be refused. Correct the name or its DNS record" in told[" --connect"]
