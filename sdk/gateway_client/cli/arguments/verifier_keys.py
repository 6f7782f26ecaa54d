"""Public keys of logs and witnesses as a command line names them: `NAME+ID+KEY`, or a file with one a line."""

from pathlib import Path

from gateway_client.cli.arguments.files import read
from gateway_client.cli.exits import usage
from gateway_client.evidence.notes import LOG, VerifierKey

MAX_FILE = 65_536


def key_of(text: str, kind: int = LOG) -> str:
    """The verifier key, if the text is one. Raises Failure usage otherwise."""
    try:
        VerifierKey.parse(text, kind)
    except ValueError as error:
        raise usage(str(error), "NAME+ID+KEY; of the gateway: gatectl audit checkpoint") from None
    return text


def keys_in(file: Path) -> list[str]:
    """The verifier keys of a file; empty lines are passed over. Raises Failure usage, OSError."""
    try:
        text = read(file, MAX_FILE, "name a file of keys").decode()
    except UnicodeDecodeError:
        raise usage(f"{file} is no text") from None
    return [key_of(line.strip()) for line in text.splitlines() if line.strip()]
