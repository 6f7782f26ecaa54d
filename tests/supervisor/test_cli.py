"""The command line: what it prints and what it returns, in this process; and some of it as a process."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.cli import main
from supervisor.programs import INTERPRETER
from tests.support.supervised import told, wait_until

PRODUCTION = """state_dir = "state"
public_base_url = "https://gate.example"
receipt_signing_key_path = "receipt.pem"
grant_signing_key_path = "grant.pem"
receipt_keys_jwks_path = "jwks.json"
listen_uds_path = "run/gate.sock"
listen_admin_uds_path = "run/gate-admin.sock"
[[operators]]
name = "ada"
api_key_sha256 = "{digest}"
dpop_jkt = "{jkt}"
""".format(digest="0" * 64, jkt="x" * 42 + "w")


def gateway(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command as a process."""
    return subprocess.run(
        [*INTERPRETER, "supervisor.cli", *arguments], capture_output=True, text=True, timeout=300, cwd=folder
    )


def here(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The same code in this process, for commands that start nothing."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = main(arguments)
        except SystemExit as left:
            code = left.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def test_the_version_is_printed() -> None:
    done = gateway(Path("/"), "--version")
    assert (done.returncode, done.stdout) == (0, "gateway 0.1.0\n")


@pytest.mark.parametrize("arguments", [["serve"], ["run", "--help"], ["run", "--config", "missing.toml"]])
def test_a_process_ends_as_the_same_code_does_in_this_one(arguments: list[str]) -> None:
    done, in_process = gateway(Path("/"), *arguments), here(Path("/"), *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (in_process.returncode, in_process.stdout, in_process.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["serve"],
        ["run"],
        ["check"],
        ["dev", "extra"],
        ["ledger"],
        ["policy"],
        ["policy", "explain"],
        ["policy", "check", "a", "b"],
        ["schema"],
        ["schema", "policy"],
    ],
)
def test_a_command_line_that_makes_no_sense_shows_how_it_is_used(arguments: list[str]) -> None:
    done = here(Path("/"), *arguments)
    assert done.returncode == Exit.USAGE
    assert done.stderr.startswith("usage: gateway")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["dev", "--help"],
        ["ledger", "verify", "-h"],
        ["check", "-h"],
        ["policy", "test", "-h"],
        ["policy", "check", "-h"],
        ["policy", "explain", "-h"],
        ["schema", "-h"],
    ],
)
def test_help_is_there_for_every_command(arguments: list[str]) -> None:
    done = here(Path("/"), *arguments)
    assert done.returncode == 0
    assert "usage: gateway" in done.stdout


def test_every_exit_code_of_the_help_is_in_the_document() -> None:
    shown = {int(code) for code in re.findall(r"(?<![\w.])(\d+) [a-z]", here(Path("/"), "--help").stdout)}
    assert shown == {code for code in Exit if not 10 <= code <= 15}
    document = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
    assert shown <= {int(code) for code in re.findall(r"^\| (\d+) \|", document, re.MULTILINE)}


def test_an_unsafe_setting_is_refused_in_production_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(PRODUCTION.replace("dpop_jkt", "# dpop_jkt") + '[identity]\nprovider = "none"\n')
    done = here(tmp_path, "run", "--config", "g.toml")
    assert done.returncode == Exit.CONFIG
    for place in (
        'g.toml:8  operators[0].dpop_jkt of "ada": is missing, a key alone is not allowed in production. ',
        'g.toml:13  identity.provider = "none": not allowed in production. ',
    ):
        assert f"\n{place}" in f"\n{done.stderr}"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["g.toml"]


def test_broken_production_rules_are_reported_with_all_other_problems(tmp_path: Path) -> None:
    broken = PRODUCTION.replace('grant_signing_key_path = "grant.pem"', "grant_signing_key_path = 3")
    row = '[[operators]]\nname = "bob"\napi_key = "short"\n'
    (tmp_path / "g.toml").write_text("lease_ttl_seconds = 0\n" + broken + row + '[identity]\nprovider = "none"\n')
    done = here(tmp_path, "run", "--config", "g.toml")
    assert done.returncode == Exit.CONFIG
    lines = [line.split(": ")[0] for line in done.stderr.splitlines()[:-1]]
    assert [line for line in lines if line.startswith("g.toml:")] == [
        "g.toml:1  lease_ttl_seconds = 0",
        "g.toml:4  receipt_signing_key_path",
        "g.toml:5  grant_signing_key_path = 3",
        'g.toml:13  operators[1].dpop_jkt of "bob"',
        'g.toml:15  operators[1].api_key of "bob" must have the form key-bob-<32 hexadecimal digits>.',
        'g.toml:17  identity.provider = "none"',
    ]
    assert any("manifests folder" in line for line in done.stderr.splitlines())


def test_run_serves_a_safe_configuration_with_the_two_sockets_and_a_kept_lease_key_path(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(PRODUCTION)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*INTERPRETER, "tests.supervisor.programs.run_cli", "run", "--config", "g.toml"],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=tmp_path,
        )
    try:
        wait_until(lambda: told((tmp_path / "log").read_text(), "serving"))
        assert sorted(one.name for one in (tmp_path / "run").iterdir()) == ["gate-admin.sock", "gate.sock"]
        process.terminate()
        assert process.wait(120) == Exit.OK
        assert process.stdout is not None
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close() if process.stdout else None


def test_a_ledger_is_verified_by_a_program_that_is_not_the_supervisor(tmp_path: Path) -> None:
    done = gateway(tmp_path, "ledger", "verify", "missing.sqlite3", "--keys", "missing.json")
    assert done.returncode not in (0, Exit.USAGE)


def test_the_supervisor_loads_nothing_that_parses_requests_runs_modules_or_holds_keys() -> None:
    code = "import sys, supervisor.cli; print([n for n in sys.argv[1:] if n in sys.modules])"
    never = ["h11", "hypercorn", "http.client", "http.server", "wasmtime", "cryptography", "jwt", "yaml", "sqlite3",
             "regopy", "frontend", "workers"]  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, *never], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n"
