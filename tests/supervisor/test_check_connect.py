"""`gateway check` of a configuration whose policy engine is an OPA, and `--connect`: what does not answer is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.exits import Exit
from tests.supervisor.test_cli import here
from tests.support.checked import whole_configuration
from tests.support.opa import opa
from tests.support.ports import closed_port


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


def test_an_opa_is_asked_with_the_token_and_one_without_it_is_told(
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


def test_what_does_not_answer_is_a_problem_at_its_setting(
    check: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    with closed_port() as port:
        lines = f'opa_url = "unix://{tmp_path}/nobody.sock"\negress_proxy_url = "http://127.0.0.1:{port}"'
        code, said = check(lines)
        assert (code, said.count("is not used: the OPA of opa_url has the rules")) == (0, 1)
        code, said = check(lines, "--connect")
    assert code == Exit.UNAVAILABLE
    assert "gateway.toml:1  opa_url: no connection to OPA" in said
    assert "gateway.toml:2  egress_proxy_url: the proxy does not answer" in said
    assert "2 problems, nothing started." in said
