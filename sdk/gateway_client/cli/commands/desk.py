"""`gatectl desk`: the gateway on one screen, for the operator who decides."""

import sys

import click

from gateway_client.cli.deciding import LONGEST
from gateway_client.cli.desk import CliContext, Command, Group, pass_desk
from gateway_client.cli.exits import Failure, ScriptExit, usage


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(desk)


@click.command(cls=Command)
@click.option("--interval", type=click.FloatRange(0.5, 60), default=2.0, show_default=True,
              help="Seconds between two looks.")  # fmt: skip
@pass_desk
def desk(desk: CliContext, interval: float) -> int:
    """Held calls with their plans, decisions as they come, and how the gateway stands, on one screen.

    Needs the extra: pip install './sdk[desk]' in a clone. Keys stand at the bottom; q ends it.
    """
    if desk.is_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise usage("the desk needs a terminal", "gatectl approvals list, gatectl audit tail")
    try:
        from gateway_client.cli.tui.app import DeskApp
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "textual":
            raise
        mend = "pip install './sdk[desk]' in a clone of the gateway's repository"
        raise Failure(ScriptExit.USAGE, "no_textual", "the Python package textual is not installed", mend) from None
    with desk.operator(execute_timeout=LONGEST) as operator:
        app = DeskApp(operator, desk.gateway_name(), interval)
        code = app.run(mouse=False)
    if app.failure is not None:
        raise app.failure
    return int(ScriptExit.FAILED if code is None else code)
