"""Query strings and small bodies of operator endpoints: parsed strictly, refused with the field and the mend."""

from urllib.parse import parse_qsl

from frontend.auth.encoding import decode_object
from frontend.clock import parse_iso
from frontend.errors import GateError
from frontend.http.requests import Request

MAX_TEXT = 512
MAX_BODY_BYTES = 65_536


def query_of(request: Request, known: tuple[str, ...]) -> dict[str, str]:
    """The query's parameters. Raises invalid_request for an unknown, repeated or overlong one."""
    try:
        pairs = parse_qsl(request.query, keep_blank_values=True, strict_parsing=bool(request.query), max_num_fields=32)
    except ValueError:
        raise GateError("invalid_request", message="the query string does not parse") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise GateError("invalid_request", message=f"unknown query parameter; known are: {_list(known)}")
        if name in found:
            raise GateError("invalid_request", message=f"{name}: given twice")
        if len(value) > MAX_TEXT:
            raise GateError("invalid_request", message=f"{name}: longer than {MAX_TEXT} characters")
        found[name] = value
    return found


def number(query: dict[str, str], name: str, default: int, most: int) -> int:
    """A whole number from 1 to `most`. Raises invalid_request."""
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 1 <= int(text) <= most:
        raise GateError("invalid_request", message=f"{name}: a whole number from 1 to {most}")
    return int(text)


def choice(query: dict[str, str], name: str, known: tuple[str, ...]) -> str | None:
    """One of `known`, or None when absent. Raises invalid_request."""
    text = query.get(name)
    if text is not None and text not in known:
        raise GateError("invalid_request", message=f"{name}: one of {', '.join(known)}")
    return text


def moment(query: dict[str, str], name: str) -> float | None:
    """An ISO 8601 time as seconds, or None when absent. Raises invalid_request."""
    text = query.get(name)
    if text is None:
        return None
    try:
        return parse_iso(text)
    except ValueError:
        raise GateError("invalid_request", message=f"{name}: an ISO 8601 time such as 2026-01-31T12:00:00Z") from None


async def object_of(request: Request, known: tuple[str, ...]) -> dict[str, object]:
    """The body as a JSON object with no other members than `known`; an empty body is an empty object."""
    raw = await request.read_body(MAX_BODY_BYTES)
    if not raw.strip():
        return {}
    try:
        body = decode_object(raw)
    except ValueError:
        raise GateError("invalid_request", message="the body must be a JSON object") from None
    unknown = sorted(set(body) - set(known))
    if unknown:
        raise GateError("invalid_request", message=f"unknown member; known are: {_list(known)}")
    return body


def _list(known: tuple[str, ...]) -> str:
    return ", ".join(known) or "none"
