"""Which gateways there are: context show, list, set, use, remove, from-ready."""

import sys
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from gateway_client.cli.arguments.completing import contexts
from gateway_client.cli.contexts.contexts import MEMBERS, GatewayContext, changing, check_name, put
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.errors import ProtocolViolation
from gateway_client.keys import KeyFileError, OperatorCredential, create_private, read_private
from gateway_client.wire.address import Address
from gateway_client.wire.decoding import parse_json

context = noun("context", "Which gateways there are, and the files with the keys for them.", default="show")
MAX_READY = 16_384


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(context)


@context.command("show")
@pass_desk
def show(desk: CliContext) -> None:
    """Show what commands would use now, and who says so. No key is ever shown."""
    settings = desk.settings
    pairs = {member: settings.sourced(member) for member in MEMBERS}
    if desk.is_json:
        members = {one: None if pair is None else {"value": pair[0], "source": pair[1]} for one, pair in pairs.items()}
        desk.out.document({"context": settings.name, "file": str(settings.file), **members})
        return
    rows = [(member, *(pair or (None, None))) for member, pair in pairs.items()]
    desk.out.facts([("context", settings.name), ("file", str(settings.file))])
    desk.out.line()
    desk.out.table(("MEMBER", "VALUE", "FROM"), rows, "")


@context.command("list")
@pass_desk
def list_(desk: CliContext) -> None:
    """List the contexts; * is the current one."""
    known = desk.settings.contexts
    if desk.is_json:
        by_name = {name: asdict(one) for name, one in known.by_name.items()}
        desk.out.document({"current": known.current, "contexts": by_name})
        return
    rows = [("*" if name == known.current else "", name, one.address) for name, one in known.by_name.items()]
    desk.out.table(("", "CONTEXT", "ADDRESS"), rows, "no contexts: gatectl context from-ready FILE")


@context.command("use")
@click.argument("name", shell_complete=contexts)
@pass_desk
def use(desk: CliContext, name: str) -> None:
    """Make NAME the current context."""
    with changing(desk.settings.file) as box:
        box[0].named(name)
        box[0] = replace(box[0], current=name)
    _done(desk, name, "is the current context")


@context.command("set")
@click.argument("name")
@click.option("--agent-address", metavar="URL", help="Where calls of actions go, when that is another socket.")
@click.option("--agent-key-file", metavar="FILE", help="PEM file with the agent's key; a new one each time without it.")
@pass_desk
def set_(desk: CliContext, name: str, **own: str | None) -> None:
    """Make or change the context NAME: whatever is given by --address, --operator-key-file and so on."""
    given = {**{one: desk.flags.get(one) for one in MEMBERS}, **own}
    changes = {one: value for one, value in given.items() if value is not None}
    if not changes:
        raise usage("nothing is given that could be set", "see gatectl context set --help")
    for member, value in changes.items():
        if member.endswith("_file") and not value.startswith(("/", "~", "$")):
            changes[member] = str(Path(value).absolute())
    with changing(desk.settings.file) as box:
        context = replace(box[0].by_name.get(check_name(name), GatewayContext()), **changes)
        for address in (context.address, context.agent_address):
            if address is not None:
                Address.parse(address, context.public_base_url)
        box[0] = put(box[0], name, context)
    _done(desk, name, "is set")


@context.command("remove")
@click.argument("name", shell_complete=contexts)
@pass_desk
def remove(desk: CliContext, name: str) -> None:
    """Forget the context NAME. Key files stay."""
    with changing(desk.settings.file) as box:
        box[0].named(name)
        by_name = {one: entry for one, entry in box[0].by_name.items() if one != name}
        box[0] = replace(box[0], by_name=by_name, current=None if box[0].current == name else box[0].current)
    _done(desk, name, "is forgotten")


@context.command("from-ready")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--name", default="dev", show_default=True, help="Of the context.")
@pass_desk
def from_ready(desk: CliContext, file: Path, name: str) -> None:
    """Make a context of the ready FILE of `gateway dev`, and make it the current one."""
    ready = _ready(file)
    settings = desk.settings
    check_name(name)
    with changing(settings.file) as box:
        made = GatewayContext(
            address=ready["base_url"],
            public_base_url=ready["public_base_url"],
            operator_key_file=str(_key_file(ready, settings.file.parent, name)),
            private_key_file=ready["private_key_file"],
        )
        Address.parse(ready["base_url"], ready["public_base_url"])
        box[0] = replace(put(box[0], name, made), current=name)
    _done(desk, name, f"is the current context: {ready['base_url']}")


def _ready(file: Path) -> dict[str, str]:
    """The members that matter, all of them texts. Raises Failure; its text never quotes the file: it holds a key."""
    try:
        # One line: a running gateway's standard output does not end.
        data = sys.stdin.buffer.readline(MAX_READY) if str(file) == "-" else read_private(file)
        document = parse_json(data, "it")
        operator = document["operator"]
        wanted = {one: document[one] for one in ("base_url", "public_base_url", "state_dir")}
        wanted |= {one: operator[one] for one in ("key", "private_key_file")}
    except KeyFileError as error:
        raise Failure(ScriptExit.DENIED, "key_file", str(error)) from None
    except (ProtocolViolation, KeyError, TypeError):
        wanted = {"": None}
    if not all(isinstance(one, str) for one in wanted.values()):
        raise usage(f"{file} is not the ready file of a gateway", "gateway dev --ready-file FILE")
    return wanted


def _key_file(ready: dict[str, str], folder: Path, name: str) -> Path:
    """The gateway's key file, or where that can't be read one of gatectl's; never in the place of another file. Raises
    KeyFileError."""
    theirs = Path(ready["state_dir"]) / "operator.key"
    try:
        if OperatorCredential.load(theirs, ready["private_key_file"]).token == ready["key"]:
            return theirs
    except KeyFileError:
        pass  # of another user, or moved: the copy below serves
    key = f"{ready['key']}\n".encode()
    for own in (folder / f"{name}.key", folder / f"{name}-{sha256(key).hexdigest()[:8]}.key"):
        try:
            create_private(own, key)
            return own
        except FileExistsError:
            with suppress(KeyFileError):
                if read_private(own) == key:
                    return own
    raise KeyFileError(f"{own}: is there already, and has another key.")


def _done(desk: CliContext, name: str, what: str) -> None:
    if desk.is_json:
        done: dict[str, Any] = {"context": name, "file": str(desk.settings.file)}
        desk.out.document(done)
    else:
        desk.out.line(f"{safe(name)} {safe(what)}")
