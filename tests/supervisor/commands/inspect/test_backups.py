"""A backup that is broken off, from the side of the command."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.notary.running import ROOT
from tests.support.gateway import wait_for

COMMAND = """
import sys
from pathlib import Path
from ipc.settings import Settings
from supervisor.commands.inspect.backups import back_up
back_up(Settings(state_dir=sys.argv[1], public_base_url="http://h"), Path(sys.argv[2]), with_keys=False)
"""


def test_a_backup_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    state, target = tmp_path / "state", tmp_path / "backups" / "today"
    state.mkdir()
    target.parent.mkdir()
    os.mkfifo(state / "ledger.sqlite3")  # it has no end, as a large ledger has none for a while
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(state), str(target)], cwd=ROOT, start_new_session=True
    )
    try:
        wait_for(lambda: any(target.parent.rglob("ledger.sqlite3")), "the copy")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(60) != 0
    finally:
        process.kill()
        process.wait(60)
    assert list(target.parent.iterdir()) == []
