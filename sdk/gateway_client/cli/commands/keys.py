"""gatectl keys new: what an operator or an agent needs to prove who it is."""

import hashlib
import re
import secrets
from pathlib import Path

import click

from gateway_client.cli.desk import CliContext, Group, noun, pass_desk
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.keys import KeyFileError, ProofKey, create_private

keys = noun("keys", "Keys that proofs are signed with.")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}", re.ASCII)


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(keys)


@keys.command("new")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--operator", "name", metavar="NAME", help="Make an API key too, beside it, for an operator NAME.")
@pass_desk
def new(desk: CliContext, file: Path, name: str | None) -> None:
    """Make a private P-256 key in a new FILE (mode 0600), and print its entry for the gateway's configuration."""
    if name is not None and _NAME.fullmatch(name) is None:
        raise usage("an operator's name is 1 to 32 lower case letters, digits, dashes and underscores")
    key, api_key_file = ProofKey.generate(), file.with_suffix(".key")
    if name is not None and api_key_file == file:
        raise usage(f"{file} would be both files", "name it .pem")
    digest = None
    try:
        if name is not None:
            api_key = f"key-{name}-{secrets.token_hex(16)}"
            create_private(api_key_file, f"{api_key}\n".encode())
            digest = hashlib.sha256(api_key.encode()).hexdigest()
        _save(key, file, None if name is None else api_key_file)
    except FileExistsError as error:
        raise Failure(ScriptExit.CONFLICT, "file_exists", str(error), "name another file") from None
    except KeyFileError as error:
        raise Failure(ScriptExit.FAILED, "key_file", str(error)) from None
    if desk.is_json:
        desk.out.document(
            {
                "private_key_file": str(file), "dpop_jkt": key.thumbprint, "jwk": key.jwk, "name": name,
                "operator_key_file": None if name is None else str(api_key_file), "api_key_sha256": digest,
            }
        )  # fmt: skip
        return
    desk.out.line(f"key        {safe(str(file))}")
    if name is None:
        desk.out.line(f"dpop_jkt   {key.thumbprint}")
        return
    desk.out.line(f"api key    {safe(str(api_key_file))}")
    desk.out.line("the gateway's configuration needs:")
    desk.out.line(f'\n[[operators]]\nname = "{name}"\napi_key_sha256 = "{digest}"\ndpop_jkt = "{key.thumbprint}"')


def _save(key: ProofKey, file: Path, beside: Path | None) -> None:
    """Both files or none."""
    try:
        key.save(file)
    except BaseException:
        if beside is not None:
            beside.unlink(missing_ok=True)
        raise
