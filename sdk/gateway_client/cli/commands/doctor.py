"""gatectl doctor: is everything as it must be, and what mends it."""

from collections import Counter

import click

from gateway_client.cli.checks import FAIL, checks
from gateway_client.cli.desk import CliContext, Command, Group, pass_desk
from gateway_client.cli.exits import Failure, ScriptExit


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(doctor)


@click.command(cls=Command)
@pass_desk
def doctor(desk: CliContext) -> None:
    """Check address, sockets, clocks, key files, credential, dependencies and settings. Exit 1 when something fails."""
    rows = list(checks(desk))
    count = Counter(row.result for row in rows)
    if desk.is_json:
        listed = [
            {"check": one.check, "result": one.result, "found": one.found, "mend": one.mend or None} for one in rows
        ]
        desk.out.document({"checks": listed, "ok": count["ok"], "warn": count["warn"], "fail": count[FAIL]})
    else:
        desk.out.table(("CHECK", "", "FOUND", "MEND"), [(r.check, r.result, r.found, r.mend) for r in rows], "")
    if count[FAIL]:
        raise Failure(ScriptExit.FAILED, "doctor", f"{count[FAIL]} of {len(rows)} checks failed", "see the mends")
