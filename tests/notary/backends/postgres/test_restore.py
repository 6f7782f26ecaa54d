"""A ledger that is dumped while gateways write, and restored, as docs/operations.md, "Backing it up", has it."""

import subprocess
from pathlib import Path

import pytest

from ipc.operations.leases import ReadEpoch
from notary.checkpoints import RolledBack
from notary.opening import open_state
from notary.programs.accept_rollback import accept
from tests.notary.conftest import StartNotary
from tests.notary.running import walk_of
from tests.notary.samples import changed, make_note, record_call
from tests.support.postgres_server import USER, PostgresServer, programs

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]


def run(server: PostgresServer, program: str, *arguments: str) -> None:
    where = ["--host", str(server.folder), "--port", str(server.port), "--username", USER]
    subprocess.run([str(programs() / program), *where, *arguments], check=True, timeout=120)


def test_a_dump_is_restored_refused_accepted_and_gone_on_with(
    start: StartNotary, postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    one, dump, restored = start("one"), str(tmp_path / "ledger.dump"), f"{database}_restored"
    record_call(one.front)
    run(postgres_server, "pg_dump", "--format=custom", "--file", dump, database)
    epoch = one.front.ask(ReadEpoch())
    one.front.ask(make_note())
    one.stop()
    postgres_server.ask(f"CREATE DATABASE {restored} TEMPLATE template0 ENCODING 'UTF8'")
    run(postgres_server, "pg_restore", "--dbname", restored, dump)
    settings = changed(one.settings, ledger=postgres_server.settings(restored))
    with pytest.raises(RolledBack, match="an earlier copy was put back"):
        open_state(settings)
    assert accept(settings, "the disk was lost").startswith("Accepted: ")
    again = start("one", ledger=postgres_server.settings(restored))
    record_call(again.front, epoch=again.front.ask(ReadEpoch()))
    assert again.front.ask(ReadEpoch()) > epoch, "every lease of before has ended"
    report = walk_of(again)
    assert (report.intact, report.total_events) == (True, 3), report.reason
