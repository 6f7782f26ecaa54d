"""Kinds of values that a setting may have: each checks one value and returns it in the form of `ipc.settings`.

Pure: no file is opened, no name resolved. An invalid value raises Wrong with its fault and the mend; the place and the
name of the setting are the caller's.
"""

import math
import os
import re
from typing import TypeVar

from ipc.settings import AUTO, Auto
from supervisor.settings.kind import PathContext, ValueKind, Wrong, kind, place

T = TypeVar("T")

MAX_SOCKET_PATH = 107
"""Bytes that fit into sockaddr_un besides the final NUL (unix(7))."""

_CREDENTIALS = "CREDENTIALS_DIRECTORY"
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_LOG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}")
_PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}")
_SCOPE = re.compile(r"(?=.*:)[a-z0-9:_-]{4,64}")
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")
_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
"""A thumbprint encodes 32 bytes: its last character carries four bits and two zeros."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_UID = 2**32 - 2


@kind(type="string", minLength=1, pattern=r"^[^\u0000-\u001f\u007f]*$")
def text(value: object, _: PathContext) -> str:
    """Any text without control characters."""
    if not isinstance(value, str):
        raise Wrong("must be a text in quotes")
    if not value or any(ord(character) < 0x20 or ord(character) == 0x7F for character in value):
        raise Wrong("must be a text of one line, not empty")
    return value


@kind(type="boolean")
def flag(value: object, _: PathContext) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise Wrong("must be true or false, without quotes")
    return value


def whole(low: int, high: int) -> ValueKind[int]:
    """A whole number from `low` to `high`."""

    @kind(type="integer", minimum=low, maximum=high)
    def check(value: object, _: PathContext) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong("must be a whole number", f"Use {low} to {high}.")
        if value < low:
            raise Wrong(f"must be {low} or more", f"Use {low} to {high}.")
        if value > high:
            raise Wrong(f"must be {high} or less", f"Use {low} to {high}.")
        return value

    return check


def whole_or_auto(low: int, high: int) -> ValueKind[int | Auto]:
    """A whole number from `low` to `high`, or "auto" for what the host allows."""
    number = whole(low, high)

    @kind(anyOf=[number.form, {"const": AUTO}])
    def check(value: object, context: PathContext) -> int | Auto:
        if value == AUTO:
            return AUTO
        if isinstance(value, str):
            raise Wrong('must be a whole number or "auto"', f"Use {low} to {high}.")
        return number(value, context)

    return check


def seconds(low: float, high: float) -> ValueKind[float]:
    """A time from `low` to `high` seconds; fractions allowed."""

    @kind(type="number", minimum=low, maximum=high)
    def check(value: object, _: PathContext) -> float:
        mend = f"Use {low:g} to {high:g}."
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Wrong("must be a number of seconds", mend)
        if isinstance(value, float) and not math.isfinite(value):  # a whole number may be too large for a float
            raise Wrong("must be a number of seconds", mend)
        if value < low:
            raise Wrong(f"must be {low:g} or more", mend)
        if value > high:
            raise Wrong(f"must be {high:g} or less", mend)
        return float(value)

    return check


def choice(*allowed: str) -> ValueKind[str]:
    """One of a few words."""

    @kind(enum=list(allowed))
    def check(value: object, _: PathContext) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise Wrong("must be " + " or ".join(f'"{word}"' for word in allowed))
        return value

    return check


def _matching(expression: re.Pattern[str], what: str, **more: object) -> ValueKind[str]:
    """A text of one form. `more` is what its schema says where the expression is not spelt as ECMA-262 has it."""

    @kind(**({"type": "string", "pattern": f"^(?:{expression.pattern})$"} | more))
    def check(value: object, _: PathContext) -> str:
        if not isinstance(value, str) or not expression.fullmatch(value):
            raise Wrong(f"must be {what}")
        return value

    return check


name = _matching(_IDENTIFIER, "letters, digits, dot, underscore or dash, at most 256, a letter or digit first")
principal = _matching(_PRINCIPAL, "letters, digits and . _ : @ -, at most 256, a letter or digit first")
scope = _matching(_SCOPE, "4 to 64 of a-z 0-9 : _ - with a colon, like tools:call")
log_name = _matching(_LOG_NAME, "letters, digits and . _ : / -, at most 256, a letter or digit first")
thumbprint = _matching(_THUMBPRINT, "an RFC 7638 thumbprint: 43 characters of base64url")
host_name = _matching(_HOST_NAME, "a host name in lower case", pattern=f"^{_LABEL}(\\.{_LABEL})*$", maxLength=253)


@kind(type="string", pattern="^(sha256:)?[0-9A-Fa-f]{64}$")
def sha256(value: object, _: PathContext) -> str:
    """64 hexadecimal digits, with or without `sha256:` in front; returned without."""
    digits = value.removeprefix("sha256:").lower() if isinstance(value, str) else ""
    if not _SHA256.fullmatch(digits):
        # Not shown: it may be the key itself, put in the wrong place.
        raise Wrong("must be a SHA-256: 64 hexadecimal digits", is_secret=True)
    return digits


@kind(**text.form)
def secret_text(value: object, context: PathContext) -> str:
    """A text that is never shown."""
    try:
        return text(value, context)
    except Wrong as wrong:
        raise Wrong(wrong.what, is_secret=True) from None


@kind(type="string", pattern="^(0|[1-9][0-9]{0,9})$")
def user_id(value: object, _: PathContext) -> str:
    """A user id in decimal, as a key of a table."""
    if not isinstance(value, str) or not re.fullmatch(r"0|[1-9][0-9]{0,9}", value) or int(value) > _MAX_UID:
        raise Wrong("is not a user id", 'Use the number that "id -u NAME" prints.')
    return value


@place(**text.form)
def path(value: object, context: PathContext) -> str:
    """An absolute path; a relative one starts at the folder of the configuration file.

    `$CREDENTIALS_DIRECTORY` or `${CREDENTIALS_DIRECTORY}` may stand in front (systemd credentials); no other variable.
    """
    given = text(value, context)
    for variable in ("${" + _CREDENTIALS + "}", "$" + _CREDENTIALS):
        if given == variable or given.startswith(variable + "/"):
            folder = context.environ.get(_CREDENTIALS)
            if not folder:
                raise Wrong(f"{_CREDENTIALS} is not set", "Start the gateway with systemd credentials or name a path.")
            given = folder + given.removeprefix(variable)
            break
    if given.startswith("~"):
        raise Wrong("~ is not replaced in a path", "Write the path out.")
    if "$" in given:
        raise Wrong(f"only ${_CREDENTIALS} is replaced in a path", "Write the path out.")
    return os.path.normpath(context.folder / given)


@place(**text.form)
def socket_path(value: object, context: PathContext) -> str:
    """The path of a Unix socket: short enough for the kernel."""
    resolved = path(value, context)
    if len(os.fsencode(resolved)) > MAX_SOCKET_PATH:
        raise Wrong(f"a socket's path has at most {MAX_SOCKET_PATH} bytes", "Choose a shorter folder.")
    return resolved


def list_of(item: ValueKind[T]) -> ValueKind[tuple[T, ...]]:
    """An array, every item of one kind; not empty."""

    @kind(type="array", minItems=1, items=item.form)
    def check(value: object, context: PathContext) -> tuple[T, ...]:
        if not isinstance(value, list) or not value:
            raise Wrong("must be an array with at least one item")
        return tuple(item(one, context) for one in value)

    return check
