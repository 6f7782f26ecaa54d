"""The program behind `gateway check --connect` that tries the backends of a notary."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from ipc.keys.key_reports import BackendProblem
from ipc.process.exits import Exit
from ipc.settings import LedgerSettings, Settings, StoreSettings
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT

STORE, LEDGER = "store.redis_url", "ledger.url"


@pytest.mark.parametrize("configured", [(), (STORE,), (LEDGER,), (STORE, LEDGER)])
def test_an_unusable_backend_is_reported_at_its_setting(configured: tuple[str, ...], tmp_path: Path) -> None:
    store = StoreSettings(redis_url=f"unix://{tmp_path}/redis.sock" if STORE in configured else None)
    ledger = LedgerSettings(url=f"postgresql://ann@/anns?host={tmp_path}" if LEDGER in configured else None)
    settings = Settings(str(tmp_path), "http://gateway.test", store=store, ledger=ledger)
    done = subprocess.run(
        [*INTERPRETER, "notary.try_backends"], cwd=ROOT, input=msgspec.json.encode(settings), capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (Exit.OK, b"")
    told = msgspec.json.decode(done.stdout, type=list[BackendProblem])
    assert tuple(one.setting for one in told) == configured
    for one in told:
        assert one.sentence.startswith(f"{one.setting} = '")
        assert "can't be used: " in one.sentence
