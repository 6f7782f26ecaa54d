"""contrib/systemd/configure.sh, with a chown that the test makes: a run that fails in between is gone on with."""

import os
import stat
import subprocess
from pathlib import Path

from tests.structure.test_servers import put
from tests.support.processes import GATEWAY

SCRIPT = Path(__file__).resolve().parents[2] / "contrib" / "systemd" / "configure.sh"


def test_a_configuration_whose_owners_could_not_be_set_gets_them_in_the_next_run(tmp_path: Path) -> None:
    folder, script, chown, told = (tmp_path / name for name in ("etc", "configure.sh", "tools/chown", "told"))
    text = SCRIPT.read_text().replace("/etc/gateway", str(folder))
    script.write_text(text.replace("/opt/action-gateway/bin/gateway", str(GATEWAY)))

    def run() -> "subprocess.CompletedProcess[str]":
        path = f"{chown.parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", script, "ann"], env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip

    put(chown, "echo 'chown: invalid group' >&2; exit 1")
    first = run()
    assert (first.returncode, "chown: invalid group" in first.stderr) == (1, True), first.stderr
    made = (folder / "gateway.toml").read_bytes()
    put(chown, f'echo "$@" >> {told}')
    second = run()
    assert (second.returncode, second.stderr) == (0, "")
    assert f"root:gateway {folder} {folder}/gateway.toml" in told.read_text().splitlines()
    assert stat.S_IMODE((folder / "gateway.toml").stat().st_mode) == 0o640
    assert ((folder / "gateway.toml").read_bytes(), (folder / ".configuring").exists()) == (made, False)
    told.unlink()
    assert (run().returncode, told.exists()) == (0, False), "what is done stays as it is"
