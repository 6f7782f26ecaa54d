"""`gatectl mcp`: the gateway's actions as tools for whatever host speaks MCP over standard input and output."""

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gateway_client.agents import AsyncAgentClient
from gateway_client.calling.leases import WAIT_SECONDS, LeaseTerms
from gateway_client.cli.arguments.files import jwks_in
from gateway_client.cli.desk import CliContext, Group, pass_desk
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.cli.mcp_hosts.hosts import ENTRY, HOSTS, McpHost, entry_of, is_ours
from gateway_client.cli.mcp_hosts.settings_file import HostFile
from gateway_client.cli.mcp_hosts.started import own_command, own_variables


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(mcp)


@click.group(cls=Group, invoke_without_command=True)
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Ask for this scope; may be given again.")
@click.option("--max-calls", type=click.IntRange(min=0, max=2**53 - 1),
              help="Budget of the session, which then ends with its lease.")  # fmt: skip
@click.option("--wait", "wait_seconds", type=click.FloatRange(min=0, max=300), default=30.0, show_default=True,
              help="Seconds that a call stays open for an operator's decision.")  # fmt: skip
@click.option("--refresh", "refresh_seconds", type=click.FloatRange(min=0, max=3600), default=30.0, show_default=True,
              help="Seconds between two looks for new actions; 0 for none.")  # fmt: skip
@click.option("--receipt-keys", "keys_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Verify receipts here, with a JWKS that `gatectl receipts keys` printed.")  # fmt: skip
@click.pass_context
def mcp(
    context: click.Context,
    scopes: tuple[str, ...],
    max_calls: int | None,
    wait_seconds: float,
    refresh_seconds: float,
    keys_file: Path | None,
) -> None:
    """Serve the actions as MCP tools on standard input and output, for an agent's host.

    Needs the extra: pip install './sdk[mcp]' in a clone. Standard error has the log.
    """
    if context.invoked_subcommand is not None:
        return
    desk = context.ensure_object(CliContext)
    address, key = desk.agent_parts()
    receipt_keys = None if keys_file is None else jwks_in(keys_file)
    try:
        from gateway_client.mcp_server.serving import McpOptions, serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise _no_mcp() from None
    terms = LeaseTerms(scopes or LeaseTerms().scopes, max_calls, seconds_left=WAIT_SECONDS)
    logging.basicConfig(level=logging.WARNING, format="gatectl mcp: %(levelname)s %(name)s: %(message)s")
    with suppress(OSError):  # a closed standard error must not end the session
        click.echo(f"gatectl mcp: serving the actions of {safe(address.socket or address.origin)}", err=True)
    serve(AsyncAgentClient(address, key, terms), McpOptions(wait_seconds, refresh_seconds, receipt_keys=receipt_keys))


@mcp.command("install")
@click.argument("host", type=click.Choice(list(HOSTS)), required=False)
@click.option("--dry-run", "is_dry", is_flag=True, help="Show the change, and write nothing.")
@click.option("--list", "is_list", is_flag=True, help="List the hosts, their files, and whether they start gatectl.")
@pass_desk
def install(desk: CliContext, host: str | None, is_dry: bool, is_list: bool) -> None:
    """Let HOST start `gatectl mcp`, with the options that stand before `install`.

    Shows the change of the host's file, and keeps a copy of the file.
    """
    if (host is None) is not is_list:
        raise usage("either a HOST or --list", "see gatectl mcp install --help")
    if host is None:
        _list(desk)
        return
    if find_spec("mcp") is None:
        raise _no_mcp()
    chosen = HOSTS[host]
    file = HostFile.read(chosen.path(os.environ))
    found = _entry(file, chosen)
    arguments = ["mcp", *_server_options(click.get_current_context()), *_gateway_options(desk)]
    entry = entry_of(chosen, found, own_command(), arguments, own_variables(os.environ))
    _change(desk, chosen, file, entry, is_dry)


@mcp.command("uninstall")
@click.argument("host", type=click.Choice(list(HOSTS)))
@click.option("--dry-run", "is_dry", is_flag=True, help="Show the change, and write nothing.")
@pass_desk
def uninstall(desk: CliContext, host: str, is_dry: bool) -> None:
    """Let HOST start `gatectl mcp` no more. Keeps a copy of its file."""
    chosen = HOSTS[host]
    file = HostFile.read(chosen.path(os.environ))
    _entry(file, chosen)
    _change(desk, chosen, file, None, is_dry)


def _no_mcp() -> Failure:
    mend = "pip install './sdk[mcp]' in a clone of the gateway's repository"
    return Failure(ScriptExit.USAGE, "no_mcp", "the Python package mcp is not installed", mend)


def _list(desk: CliContext) -> None:
    rows = []
    for host in HOSTS.values():
        path = host.path(os.environ)
        try:
            found = HostFile.read(path).entry((host.servers, ENTRY))
            state = "absent" if found is None else "installed" if is_ours(found) else "other"
        except (Failure, OSError):
            state = "unreadable"
        rows.append({"host": host.name, "title": host.title, "file": str(path), "state": state})
    if desk.is_json:
        desk.out.document(rows)
    else:
        desk.out.table(("HOST", "STATE", "FILE"), [(one["host"], one["state"], one["file"]) for one in rows], "")


def _entry(file: HostFile, host: McpHost) -> Any:
    """The entry that is there, or None. Raises Failure for one that is not gatectl's."""
    found = file.entry((host.servers, ENTRY))
    if found is None or is_ours(found):
        return found
    message = f"{safe(file.path)}: {host.servers}.{ENTRY} does not start gatectl mcp"
    raise Failure(ScriptExit.CONFLICT, "host_file", message, "rename or remove it by hand; nothing was changed")


def _server_options(context: click.Context) -> list[str]:
    """The options of `gatectl mcp` that stand before the verb, as the host will give them."""
    assert context.parent is not None
    told: list[str] = []
    for option in context.parent.command.params:
        name = str(option.name)
        if not option.expose_value or context.parent.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        values = context.parent.params[name]
        for value in values if isinstance(values, tuple) else (values,):
            told += [option.opts[0], _written(value)]
    return told


def _written(value: Any) -> str:
    """The value of an option as a command line has it."""
    if isinstance(value, Path):
        return str(value.absolute())
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _gateway_options(desk: CliContext) -> list[str]:
    """The flags that name the gateway. Raises Failure for a context that does not exist."""
    if desk.settings.name is not None:
        desk.settings.contexts.named(desk.settings.name)
    given: Mapping[str, str] = desk.flags
    names = [name for name in ("context", "address", "public_base_url") if name in given]
    return [text for name in names for text in (f"--{name.replace('_', '-')}", given[name])]


def _change(desk: CliContext, host: McpHost, file: HostFile, entry: dict[str, Any] | None, is_dry: bool) -> None:
    text = file.changed((host.servers, ENTRY), entry)
    is_same = entry == file.entry((host.servers, ENTRY))
    diff = [] if is_same else file.diff(text)
    copy = None if is_same or is_dry else file.replace(text)
    state = "unchanged" if is_same else "would change" if is_dry else "changed"
    if desk.is_json:
        told = {"host": host.name, "file": str(file.path), "state": state, "copy": copy and str(copy), "diff": diff}
        desk.out.document(told)
        return
    for line in diff:
        desk.out.line(safe(line))
    desk.out.line(f"{host.title}: {safe(file.path)} {state if is_same or is_dry else 'is ' + state}")
    if copy is not None:
        desk.out.line(f"before: {safe(copy)}")
    if state == "changed":
        desk.out.line(f"Restart {host.title}, or let it load its servers anew.")
