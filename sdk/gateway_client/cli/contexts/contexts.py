"""The context file: which gateways there are, by name, and which files hold the keys for them. Holds no secret itself.

SECURITY: a writer of this file decides where an operator's key is sent, so a file that others can write, or that
belongs to another user (root aside), is refused. It is replaced whole or not at all, and changes take turns.
"""

import fcntl
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.keys import KeyFileError, replace_private

MAX_BYTES = 262_144
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """One gateway. Every member may be absent: flags and environment come first."""

    address: str | None = None
    agent_address: str | None = None
    """Where calls of actions go, when that is another socket than the operators'."""
    public_base_url: str | None = None
    operator_key_file: str | None = None
    private_key_file: str | None = None
    agent_key_file: str | None = None


MEMBERS = tuple(one.name for one in fields(GatewayContext))


@dataclass(frozen=True, slots=True)
class Contexts:
    """The whole file."""

    current: str | None = None
    by_name: Mapping[str, GatewayContext] = field(default_factory=dict)

    def named(self, name: str) -> GatewayContext:
        """Raises Failure no_context."""
        if name not in self.by_name:
            raise Failure(ScriptExit.USAGE, "no_context", f"there is no context {name!r}", "gatectl context list")
        return self.by_name[name]


def contexts_file(environ: Mapping[str, str]) -> Path:
    """GATECTL_CONTEXTS_FILE, or gatectl/contexts.toml below XDG_CONFIG_HOME or ~/.config."""
    if given := environ.get("GATECTL_CONTEXTS_FILE"):
        return Path(given)
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".config"
    return folder / "gatectl" / "contexts.toml"


def check_name(name: str) -> str:
    """`name` itself. Raises Failure for one that a file or a shell could misread."""
    if _NAME.fullmatch(name) is None:
        raise usage("a context's name is 1 to 64 letters, digits, dots, dashes and underscores")
    return name


def load(file: Path) -> Contexts:
    """The contexts of a file; none when there is no file. Raises Failure contexts_file."""
    text = _read(file)
    if text is None:
        return Contexts()
    try:
        table = tomllib.loads(text)
        listed = table.pop("contexts", {})
        current = table.pop("current", None)
        if table or not isinstance(listed, dict) or not isinstance(current, str | None):
            raise ValueError(f"unknown member {next(iter(table))!r}" if table else "a member has the wrong type")
        return Contexts(current, {name: _context(name, members) for name, members in listed.items()})
    except ValueError as error:
        raise _refused(file, f"can't be used: {error}", "mend the file by hand") from None


def save(file: Path, contexts: Contexts) -> None:
    """Replace the file. Raises Failure contexts_file."""
    try:
        replace_private(file, _toml(contexts).encode())
    except KeyFileError as error:
        raise _refused(file, f"can't be written: {error}".rstrip("."), "see its folder") from None


@contextmanager
def changing(file: Path) -> Iterator[list[Contexts]]:
    """Read, change the one item of the list, and it is written when the block ends well. One at a time."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(
            file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        raise _refused(file, f"can't be changed: {error.strerror}", "see its folder") from None
    with open(descriptor, "wb"):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failure(
                ScriptExit.CONFLICT, "contexts_file", "another gatectl is changing it", "run it again"
            ) from None
        box = [load(file)]
        yield box
        save(file, box[0])


def put(contexts: Contexts, name: str, context: GatewayContext) -> Contexts:
    """With this context, new or changed; the first one becomes the current one."""
    by_name = {**contexts.by_name, check_name(name): context}
    return replace(contexts, by_name=by_name, current=contexts.current or name)


def _context(name: str, members: object) -> GatewayContext:
    if _NAME.fullmatch(name) is None or not isinstance(members, dict):
        raise ValueError(f"[contexts.{name}] is no context")
    for member, value in members.items():
        if member not in MEMBERS:
            raise ValueError(f"unknown member {member!r} in [contexts.{name}]")
        if not isinstance(value, str) or not value or not value.isprintable():
            raise ValueError(f"{member} in [contexts.{name}] is no text of printable characters")
    return GatewayContext(**members)


def _toml(contexts: Contexts) -> str:
    parts = [] if contexts.current is None else [f"current = {_quoted(contexts.current)}\n"]
    for name, context in sorted(contexts.by_name.items()):
        members = [(one, getattr(context, one)) for one in MEMBERS]
        shown = "".join(f"{one} = {_quoted(value)}\n" for one, value in members if value is not None)
        parts.append(f"[contexts.{_quoted(name)}]\n{shown}")
    return "\n".join(parts)


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise usage("a context holds printable characters alone")
    return json.dumps(text, ensure_ascii=False)  # of printable text, this is a TOML string too


def _read(file: Path) -> str | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(file, f"can't be opened: {error.strerror}", "see its owner and mode") from None
    with open(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refused(file, "is not a regular file", "remove it")
        if status.st_mode & 0o022:
            raise _refused(file, f"others can write it (mode {status.st_mode & 0o777:04o})", f"chmod 600 {file}")
        if status.st_uid not in {0, os.geteuid()}:
            raise _refused(file, f"belongs to user {status.st_uid}", "use a file of your own")
        data = opened.read(MAX_BYTES + 1)
    try:
        if len(data) > MAX_BYTES:
            raise ValueError
        return data.decode("utf-8-sig")
    except ValueError:
        raise _refused(file, "is too large, or no text", "mend the file by hand") from None


def _refused(file: Path, message: str, mend: str) -> Failure:
    return Failure(ScriptExit.USAGE, "contexts_file", f"{file} {message}", mend)
