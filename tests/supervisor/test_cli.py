"""The command line: what it prints and what it returns, as a process."""

import subprocess
import sys
from pathlib import Path

import pytest

from ipc.exits import Exit
from tests.support.supervised import wait_until

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
""".format(digest="0" * 64, jkt="x" * 43)


def gateway(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "supervisor.cli", *arguments], capture_output=True, text=True, timeout=20, cwd=folder
    )


def test_version() -> None:
    done = gateway(Path("/"), "--version")
    assert (done.returncode, done.stdout) == (0, "gateway 0.1.0\n")


@pytest.mark.parametrize(
    "arguments", [[], ["serve"], ["run"], ["check"], ["dev", "extra"], ["ledger"], ["ledger", "verify", "f"]]
)
def test_a_command_line_that_makes_no_sense_shows_how_it_is_used(arguments: list[str]) -> None:
    done = gateway(Path("/"), *arguments)
    assert done.returncode == Exit.USAGE
    assert done.stderr.startswith("usage: gateway")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["dev", "--help"], ["ledger", "verify", "-h"]])
def test_help_is_there_for_every_command(arguments: list[str]) -> None:
    done = gateway(Path("/"), *arguments)
    assert done.returncode == 0
    assert "usage: gateway" in done.stdout


def test_check_says_that_a_safe_configuration_is_safe(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(PRODUCTION)
    done = gateway(tmp_path, "check", "--config", "g.toml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "g.toml: no problems.\n", "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["g.toml"]


def test_check_prints_all_problems_at_once(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text("lease_ttl_seconds = 0\n" + PRODUCTION + "\n[limit]\n")
    done = gateway(tmp_path, "check", "--config", "g.toml")
    assert done.returncode == Exit.CONFIG
    assert done.stdout == (
        "g.toml:1  lease_ttl_seconds = 0: must be 1 or more. Use 1 to 3600.\n"
        'g.toml:14  unknown key "limit". Did you mean [limits]?\n'
        "2 problems, nothing started.\n"
    )


def test_what_is_not_safe_for_production_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(PRODUCTION.replace("dpop_jkt", "# dpop_jkt") + '[identity]\nprovider = "none"\n')
    for command in ("check", "run"):
        done = gateway(tmp_path, command, "--config", "g.toml")
        assert done.returncode == Exit.CONFIG
        assert (done.stdout or done.stderr) == (
            'g.toml:8  operators[0].dpop_jkt of "ada": is missing. A key alone is not allowed in production.\n'
            'g.toml:13  identity.provider = "none": not allowed in production. Use "peercred".\n'
            "2 problems, nothing started.\n"
        )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["g.toml"]


def test_a_weakness_that_is_allowed_is_named(tmp_path: Path) -> None:
    text = 'listen_http_addr = "127.0.0.1:3000"\nunsafe_expose_http = true\n' + PRODUCTION
    (tmp_path / "g.toml").write_text(text)
    done = gateway(tmp_path, "check", "--config", "g.toml")
    assert done.stdout == "g.toml: no problems. Weakened: unsafe_expose_http.\n"


def test_run_serves_a_safe_configuration_with_the_two_sockets_and_a_kept_lease_key_path(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(PRODUCTION)
    run_cli = str(Path(__file__).parent / "programs" / "run_cli.py")
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, run_cli, "run", "--config", "g.toml"], stdout=subprocess.PIPE, stderr=log, cwd=tmp_path
        )
    try:
        wait_until(lambda: '"message": "serving"' in (tmp_path / "log").read_text())
        assert sorted(one.name for one in (tmp_path / "run").iterdir()) == ["gate-admin.sock", "gate.sock"]
        process.terminate()
        assert process.wait(15) == Exit.OK
        assert process.stdout is not None
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close() if process.stdout else None


def test_a_ledger_is_verified_by_a_program_that_is_not_the_supervisor(tmp_path: Path) -> None:
    done = gateway(tmp_path, "ledger", "verify", "missing.sqlite3", "--keys", "missing.json")
    assert done.returncode not in (0, Exit.USAGE)


def test_the_supervisor_loads_nothing_that_parses_requests_runs_modules_or_holds_keys() -> None:
    code = "import sys, supervisor.cli; print([n for n in sys.argv[1:] if n in sys.modules])"
    never = ["h11", "hypercorn", "http.client", "http.server", "wasmtime", "cryptography", "jwt", "yaml", "sqlite3",
             "regopy", "frontend", "workers"]  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, *never], capture_output=True, text=True, timeout=20)
    assert done.stdout == "[]\n"
