"""`gatectl mcp`: the gateway's actions as tools for whatever host speaks MCP over standard input and output."""

import logging
from contextlib import suppress
from pathlib import Path

import click

from gateway_client.agents import AsyncAgentClient
from gateway_client.cli.desk import CliContext, Command, Group, pass_desk
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.cli.files import jwks_in
from gateway_client.cli.safe import safe
from gateway_client.leases import WAIT_SECONDS, LeaseTerms


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(mcp)


@click.command(cls=Command)
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Ask for this scope; may be given again.")
@click.option("--max-calls", type=click.IntRange(min=0, max=2**53 - 1),
              help="Budget of the session, which then ends with its lease.")  # fmt: skip
@click.option("--wait", "wait_seconds", type=click.FloatRange(min=0, max=300), default=30.0, show_default=True,
              help="Seconds that a call stays open for an operator's decision.")  # fmt: skip
@click.option("--refresh", "refresh_seconds", type=click.FloatRange(min=0, max=3600), default=30.0, show_default=True,
              help="Seconds between two looks for new actions; 0 for none.")  # fmt: skip
@click.option("--receipt-keys", "keys_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Verify receipts here, with a JWKS that `gatectl receipts keys` printed.")  # fmt: skip
@pass_desk
def mcp(
    desk: CliContext,
    scopes: tuple[str, ...],
    max_calls: int | None,
    wait_seconds: float,
    refresh_seconds: float,
    keys_file: Path | None,
) -> None:
    """Serve the actions as MCP tools on standard input and output, for an agent's host.

    Needs the extra: pip install './sdk[mcp]' in a clone. Standard error has the log.
    """
    address, key = desk.agent_parts()
    receipt_keys = None if keys_file is None else jwks_in(keys_file)
    try:
        from gateway_client.mcp_server.serving import McpOptions, serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        mend = "pip install './sdk[mcp]' in a clone of the gateway's repository"
        raise Failure(ScriptExit.USAGE, "no_mcp", "the Python package mcp is not installed", mend) from None
    terms = LeaseTerms(scopes or LeaseTerms().scopes, max_calls, seconds_left=WAIT_SECONDS)
    logging.basicConfig(level=logging.WARNING, format="gatectl mcp: %(levelname)s %(name)s: %(message)s")
    with suppress(OSError):  # a closed standard error must not end the session
        click.echo(f"gatectl mcp: serving the actions of {safe(address.socket or address.origin)}", err=True)
    serve(AsyncAgentClient(address, key, terms), McpOptions(wait_seconds, refresh_seconds, receipt_keys=receipt_keys))
