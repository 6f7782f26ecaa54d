"""The gateway as a service: what systemd and the journal know of it, and what they do when it hangs, stops or moves."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.support.gateway import wait_for
from tests.support.systemd_box import SOURCE, Box, Installed, wait_state
from tests.systemd.conftest import reset
from tests.systemd.load import in_background

UNITS = Path(__file__).resolve().parents[2] / "contrib" / "systemd"
SERVING = r"serving · 2 actions · 0 held · \d+ in flight · \d+ unresolved · redis ok · opa ok"
DRAINING = r"draining · 1 in flight · oldest \d+\.\d s · \d+ s left"
HANG_SECONDS = 15
CALL_SECONDS = 15
"""The duration of a call in flight: meanwhile a line each second has to say that the stop waits for it."""
WAIT_SECONDS = 200.0
MOST_EXPOSED = 1.5
MOST_EXPOSED_WITH_WALLS = 2.4


def test_systemctl_status_says_how_the_gateway_stands(serving: Installed, inside: Box) -> None:
    wait_for(lambda: re.fullmatch(SERVING, inside.show("gateway", "StatusText")), "a status line", WAIT_SECONDS)
    assert inside.show("gateway", "Type") == "notify"
    assert inside.show("gateway", "WatchdogUSec") == "30s"


def test_a_line_of_the_log_has_its_fields_in_the_journal(serving: Installed, inside: Box) -> None:
    answer = serving.agent().execute("text_digest", {"text": "x"}).json()
    matches = (f"TRACE_ID={answer['trace_id']}", "DECISION=allow")
    (entry,) = wait_for(lambda: inside.journal(*matches), "its line", WAIT_SECONDS)
    assert entry["ACTION_ID"] == "text_digest"
    assert entry["PRINCIPAL"] == "agent"
    assert entry["PROCESS"] == "front 1"
    assert (entry["PRIORITY"], entry["SYSLOG_IDENTIFIER"]) == ("6", "gateway")
    assert re.fullmatch(rf"allow  text_digest  agent  \d+ ms  {answer['trace_id']}", entry["MESSAGE"])
    assert [one["PROCESS"] for one in inside.journal("MESSAGE=serving")][-1] == "supervisor"


def test_keys_and_secrets_are_credentials_that_the_gateways_user_cannot_read_at_their_source(
    serving: Installed, inside: Box
) -> None:
    for name in ("keys/lease.pem", "keys/receipt.pem", "secrets.json"):
        refused = inside.run("runuser", "-u", "gateway", "--", "cat", f"/etc/gateway/{name}", check=False)
        assert "Permission denied" in refused.stderr, name
    folder = inside.path("/run/credentials/gateway.service")
    credentials = {one.name: one.stat().st_mode & 0o777 for one in folder.iterdir()}
    names = ("checkpoint.pem", "grant.pem", "lease.pem", "receipt.pem", "secrets.json")
    assert credentials == dict.fromkeys(names, 0o400)
    receipt = serving.agent().execute("text_digest", {"text": "x"}).json()["receipt_id"]
    shown = serving.operator().get(f"/v1/receipts/{receipt}")
    assert shown.status_code in (200, 403), "signed with the key of the credential"


def test_a_stop_drains_and_the_call_in_flight_ends_as_it_would_have(serving: Installed, inside: Box) -> None:
    agent = serving.agent()
    call, answers = in_background(lambda: agent.execute("spin", {"seconds": CALL_SECONDS}))
    wait_for(lambda: " 1 in flight" in inside.show("gateway", "StatusText"), "the call", WAIT_SECONDS)
    stop, _ = in_background(lambda: inside.run("systemctl", "stop", "gateway.service"))
    wait_for(lambda: re.fullmatch(DRAINING, inside.show("gateway", "StatusText")), "its drain", WAIT_SECONDS)
    assert inside.show("gateway", "ActiveState") == "deactivating"
    call.join(WAIT_SECONDS)
    stop.join(WAIT_SECONDS)
    assert answers[0].status_code == 200, answers[0].text
    assert answers[0].headers["connection"] == "close"
    assert inside.show("gateway", "Result") == "success"
    assert inside.show("gateway", "ExecMainStatus") == "0"


def test_a_template_that_hangs_is_noticed_by_the_watchdog_and_the_whole_gateway_is_started_again(
    serving: Installed, inside: Box
) -> None:
    inside.drop_in("test-watchdog", f"WatchdogSec={HANG_SECONDS}")
    inside.run("systemctl", "restart", "gateway.service")
    before = inside.processes("gateway.service")
    (template,) = [pid for pid, title in before.items() if title == "gateway: template"]
    inside.run("kill", f"-{signal.SIGSTOP.name[3:]}", str(template))
    wait_for(lambda: inside.show("gateway", "NRestarts") == "1", "the watchdog", WAIT_SECONDS)
    wait_state(inside, "gateway.service", "active")
    assert not before.keys() & inside.processes("gateway.service").keys()
    assert any("template does not answer" in one["MESSAGE"] for one in inside.journal("PRIORITY=3"))
    assert any("Watchdog timeout" in one["MESSAGE"] for one in inside.journal())
    assert serving.http.get("/readyz").status_code == 200


def test_sockets_that_no_unit_holds_are_kept_by_systemd_where_it_is_asked_to(gate: Installed, inside: Box) -> None:
    reset(inside)
    unit = (inside.path("/etc/systemd/system/gateway.service")).read_text()
    alone = re.sub(r"^(Requires|After|Sockets)=.*\n", "", unit, flags=re.MULTILINE)
    keeps = "[Service]\nFileDescriptorStoreMax=4\nEnvironment=FDSTORE=4\nReadWritePaths=/run/gateway\n"
    inside.put("/etc/systemd/system/kept.service", alone + keeps)
    inside.put(
        "/etc/systemd/system/kept.service.d/walls.conf", (UNITS / "gateway.service.d" / "walls.conf").read_text()
    )
    inside.run("systemctl", "daemon-reload")
    inside.run("systemctl", "start", "kept.service")
    assert inside.show("kept", "NFileDescriptorStore") == "2"
    socket = os.stat(gate.ready["client_socket"]).st_ino
    inside.run("systemctl", "restart", "kept.service")
    assert os.stat(gate.ready["client_socket"]).st_ino == socket
    assert gate.http.get("/readyz").status_code == 200
    inside.run("systemctl", "stop", "kept.service")


@pytest.mark.parametrize(("has_walls", "most"), [(False, MOST_EXPOSED), (True, MOST_EXPOSED_WITH_WALLS)])
@pytest.mark.usefixtures("inside")
def test_the_service_is_exposed_no_more_than_its_documentation_says(
    tmp_path: Path, has_walls: bool, most: float
) -> None:
    shutil.copy(UNITS / "gateway.service", tmp_path)
    if has_walls:
        (tmp_path / "gateway.service.d").mkdir()
        shutil.copy(UNITS / "gateway.service.d" / "walls.conf", tmp_path / "gateway.service.d")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(tmp_path / "gateway.service")]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    level = re.search(r"Overall exposure level for gateway.service: ([0-9.]+)", said)
    assert level is not None
    assert float(level[1]) <= most, said


def test_systemd_finds_nothing_wrong_with_the_units(inside: Box, gate: Installed) -> None:
    units = [f"/etc/systemd/system/{name}" for name in ("gateway.service", "gateway.socket", "gateway-admin.socket")]
    said = inside.run("systemd-analyze", "verify", "--man=no", *units)
    assert "gateway" not in said.stderr, said.stderr


def test_installing_again_changes_neither_keys_nor_configuration(inside: Box, gate: Installed) -> None:
    kept = ("/etc/gateway/gateway.toml", "/etc/gateway/keys/lease.pem", "/etc/gateway/policy/data.json")
    before = [inside.path(one).read_bytes() for one in kept]
    said = inside.run(f"{SOURCE}/contrib/systemd/install.sh", "ann").stdout
    assert [inside.path(one).read_bytes() for one in kept] == before
    assert "key-ann-" not in said


def test_check_looks_at_the_configuration_as_the_service_does(serving: Installed, inside: Box) -> None:
    said = inside.run(f"{SOURCE}/contrib/systemd/check.sh").stdout
    assert said == "/etc/gateway/gateway.toml: no problems, 2 actions, policy version 1.\n"
    inside.run("mv", "/etc/gateway/keys/grant.pem", "/etc/gateway/keys/aside.pem")
    inside.run("cp", "/etc/gateway/keys/receipt.pem", "/etc/gateway/keys/grant.pem")
    refused = inside.run(f"{SOURCE}/contrib/systemd/check.sh", check=False)
    inside.run("mv", "/etc/gateway/keys/aside.pem", "/etc/gateway/keys/grant.pem")
    assert (refused.returncode, "grant_signing_key_path" in refused.stdout) == (int(Exit.CONFIG), True), refused.stdout


def test_check_has_the_credentials_and_settings_of_drop_ins(serving: Installed, inside: Box) -> None:
    inside.put("/etc/gateway/empty.json", "{}\n")
    inside.put("/etc/gateway/list.json", "[]\n")
    inside.run("systemd-creds", "encrypt", "--name=list.json", "/etc/gateway/list.json", "/etc/gateway/list.cred")
    first, second = (f"Environment=GATEWAY__SECRETS__FILE=%d/{name}.json" for name in ("empty", "list"))
    inside.drop_in("test-a", f"LoadCredential=empty.json:/etc/gateway/empty.json\n{first}")
    assert "no problems" in inside.run(f"{SOURCE}/contrib/systemd/check.sh").stdout
    inside.drop_in("test-b", f"LoadCredentialEncrypted=list.json:/etc/gateway/list.cred\n{second}")
    refused = inside.run(f"{SOURCE}/contrib/systemd/check.sh", check=False)
    assert (refused.returncode, "list.json" in refused.stdout) == (int(Exit.CONFIG), True), refused.stdout


def test_a_backup_is_made_and_put_back_as_the_service_does(serving: Installed, inside: Box) -> None:
    """Its user alone reads no key, root may not open its state, and the set of receipt keys is where the unit says."""
    as_service, state, kept = f"{SOURCE}/contrib/systemd/as-service.sh", "/var/lib/gateway", "/var/gateway-backup/one"
    inside.run("install", "-d", "-m", "0700", "-o", "gateway", "/var/gateway-backup")
    inside.run(as_service, "backup", kept, "--with-keys")
    for name in ("receipt-keys.jwks.json", "checkpoint-keys.jwks.json"):
        assert inside.path(f"{kept}/{name}").read_bytes() == inside.path(f"{state}/{name}").read_bytes()
    assert serving.agent().execute("text_digest", {"text": "after the backup"}).status_code == 200
    reset(inside)
    for beside in ("-wal", "-shm"):
        inside.path(f"{state}/ledger.sqlite3{beside}").unlink(missing_ok=True)
    inside.run("cp", "--preserve=all", f"{kept}/ledger.sqlite3", f"{kept}/checkpoints", state)
    accepted = inside.run(as_service, "ledger", "accept-rollback", "--reason", "the disk failed").stdout
    assert accepted.startswith("Accepted: the ledger is a backup of ")
    inside.run("systemctl", "start", "gateway.socket", "gateway-admin.socket", "gateway.service")
    assert serving.agent().execute("text_digest", {"text": "it goes on"}).status_code == 200


def test_the_installer_refuses_whoever_is_not_root(inside: Box) -> None:
    refused: subprocess.CompletedProcess[str] = inside.run(
        "runuser", "-u", "nobody", "--", f"{SOURCE}/contrib/systemd/install.sh", check=False
    )
    assert refused.returncode == 1
    assert "run this as root" in refused.stderr
