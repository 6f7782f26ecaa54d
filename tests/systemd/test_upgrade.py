"""A state folder that an earlier version has written: the service of this version continues with it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.systemd_box import Box, Installed
from tests.systemd.conftest import reset

EARLIER = Path(__file__).resolve().parents[1] / "notary" / "backends" / "fixtures" / "d1d583e"
"""Five events, four receipts, one unresolved intent, epoch 2."""
STATE, KEYS = "/var/lib/gateway", "/etc/gateway/keys"


@pytest.fixture
def upgraded(gate: Installed, inside: Box) -> Iterator[Installed]:
    """The gateway, with keys and state of the earlier one instead of its own."""
    reset(inside)
    for folder in (STATE, KEYS):
        if inside.path(folder).exists():
            inside.run("mv", folder, f"{folder}.aside")
        inside.path(folder).mkdir(mode=0o700)
    for file in EARLIER.glob("*.*"):
        shutil.copy(file, inside.path(STATE))
    for file in (EARLIER / "keys").iterdir():
        shutil.copy(file, inside.path(KEYS))
    # The earlier version had no key for checkpoints: the one of this installation.
    shutil.copy(inside.path(f"{KEYS}.aside/checkpoint.pem"), inside.path(KEYS))
    inside.run("chmod", "-R", "go=", STATE, KEYS)
    inside.run("chown", "-R", "gateway:gateway", STATE)
    inside.run("systemctl", "start", "gateway.socket", "gateway-admin.socket", "gateway.service")
    yield gate
    reset(inside)
    for folder in (STATE, KEYS):
        inside.run("rm", "-rf", folder)
        inside.run("sh", "-c", f"[ ! -e {folder}.aside ] || mv {folder}.aside {folder}")


def test_a_service_goes_on_with_the_state_of_an_earlier_version(upgraded: Installed, inside: Box) -> None:
    operator = upgraded.operator()
    status = operator.get("/v1/admin/status").json()
    assert (status["revocation_epoch"], status["unresolved_intents"]) == (2, 1)
    ids = {event["event_id"] for event in upgraded.events(limit=100)}
    assert {f"evt_{number}" for number in range(4)} <= ids
    assert upgraded.agent().execute("text_digest", {"text": "x"}).status_code == 200
    report = operator.get("/v1/audit/verify").json()
    assert report["intact"] is True, json.dumps(report)
    assert inside.show("gateway", "NRestarts") == "0"
