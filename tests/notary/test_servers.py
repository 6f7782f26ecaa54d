"""The servers of a notary: looked up before its walls stand, and tried by `gateway check --connect`."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from ipc.keys.key_reports import BackendProblem
from ipc.process.exits import Exit
from ipc.settings import LedgerSettings, Settings, StoreSettings
from notary.servers.table import NOT_LOOKED_UP, look_up
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT
from tests.notary.samples import changed


def test_only_configured_servers_are_looked_up() -> None:
    alone = Settings("/state", "http://gateway.test")
    store, ledger = (
        StoreSettings(redis_url="redis://localhost:7000"),
        LedgerSettings(url="postgresql://ann@localhost/d"),
    )
    assert look_up(alone) == NOT_LOOKED_UP
    assert look_up(changed(alone, store=store)).keys() == {"redis"}
    assert look_up(changed(alone, ledger=ledger)).keys() == {"postgresql"}
    assert look_up(changed(alone, store=store, ledger=ledger)).keys() == {"redis", "postgresql"}


STORE, LEDGER = "store.redis_url", "ledger.url"


@pytest.mark.parametrize("configured", [(), (STORE,), (LEDGER,), (STORE, LEDGER)])
def test_an_unusable_backend_is_reported_at_its_setting(configured: tuple[str, ...], tmp_path: Path) -> None:
    store = StoreSettings(redis_url=f"unix://{tmp_path}/redis.sock" if STORE in configured else None)
    ledger = LedgerSettings(url=f"postgresql://ann@/anns?host={tmp_path}" if LEDGER in configured else None)
    settings = Settings(str(tmp_path), "http://gateway.test", store=store, ledger=ledger)
    done = subprocess.run(
        [*INTERPRETER, "notary.programs.try_backends"], cwd=ROOT, input=msgspec.json.encode(settings),
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (Exit.OK, b"")
    told = msgspec.json.decode(done.stdout, type=list[BackendProblem])
    assert tuple(one.setting for one in told) == configured
    for one in told:
        assert one.sentence.startswith(f"{one.setting} = '")
        assert "can't be used: " in one.sentence
