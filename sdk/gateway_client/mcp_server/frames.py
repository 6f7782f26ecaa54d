"""One line of standard input to messages for the server, or to the error that answers it. Pure.

Guarantees that every request with a readable id gets an answer: the package `mcp` drops what it can't parse, and a host
waits for it until its own deadline. Refuses what two readers could read differently: names that stand twice, bytes that
are not UTF-8, halves of surrogate pairs. An error never quotes the line.
"""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from mcp_types.jsonrpc import jsonrpc_message_adapter

from gateway_client.wire.decoding import object_of_unique_names, refuse_constant

MAX_LINE = 4_194_304
"""Bytes of a line that is parsed, several times the largest request that the gateway takes."""
MAX_BATCH = 64
MAX_ID = 256
RequestId = str | int | float
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,"]|[^\s{}\[\]:,"]+', re.DOTALL)
_LAST_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.){0,256}+"|-?[0-9.eE+-]{1,64})\s*\}\s*\]?\s*$', re.DOTALL)


def messages_of(line: bytes) -> Iterator[SessionMessage | bytes]:
    """Messages for the server and lines for standard output, in their order."""
    if not line.strip():
        return
    if len(line) > MAX_LINE:
        yield from _refused(line, INVALID_REQUEST, f"Invalid Request: more than {MAX_LINE} bytes")
        return
    try:
        text = line.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError:
        yield from _refused(line, PARSE_ERROR, "Parse error: not UTF-8")
        return
    try:
        value = json.loads(text, object_pairs_hook=object_of_unique_names, parse_constant=refuse_constant)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        reason = "Parse error: half of a surrogate pair (\\ud800 to \\udfff) is no character; leave it out"
        yield from _refused(line, PARSE_ERROR, reason)
    except (ValueError, RecursionError):
        reason = "Parse error: not JSON, or a name stands twice in an object"
        yield from _refused(line, PARSE_ERROR, reason)
    else:
        yield from _batch(value) if isinstance(value, list) else [*_message(value)]


def line_of(message: SessionMessage) -> bytes:
    """A message of the server as one line. If it can't be encoded: an error for the same request."""
    try:
        return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # of pydantic, for text that is not Unicode
        request_id = getattr(message.message, "id", None)
        return error_line(request_id, INTERNAL_ERROR, "Internal error: the answer has text that is not Unicode")


def error_line(request_id: RequestId | None, code: int, text: str) -> bytes:
    """An error as one line; the id is null where it could not be read (JSON-RPC 2.0, section 5)."""
    frame = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}
    return json.dumps(frame).encode() + b"\n"


def _batch(values: list[Any]) -> Iterator[SessionMessage | bytes]:
    """Batches exist in revision 2025-03-26 alone; each member is served as if it had come on a line of its own."""
    if not values:
        yield error_line(None, INVALID_REQUEST, "Invalid Request: an empty batch")
    for number, value in enumerate(values):
        if number < MAX_BATCH:
            yield from _message(value)
        elif (request_id := _id_of(value)) is not None:
            yield error_line(request_id, INVALID_REQUEST, f"Invalid Request: more than {MAX_BATCH} in a batch")


def _message(value: Any) -> Iterator[SessionMessage | bytes]:
    if isinstance(value, dict) and "method" not in value and ("result" in value or "error" in value):
        with_id = _id_of(value) is not None  # the server asks its client nothing that it needs
        if with_id and not isinstance(value["id"], float):
            yield from _parsed(value, is_answer=True)
        return
    request_id = _id_of(value)
    if isinstance(value, dict) and "id" in value and (request_id is None or isinstance(request_id, float)):
        # The package would take such a request for a notification.
        yield error_line(request_id, INVALID_REQUEST, "Invalid Request: an id is text or an integer")
        return
    yield from _parsed(value, is_answer=False)


def _parsed(value: Any, *, is_answer: bool) -> Iterator[SessionMessage | bytes]:
    try:
        yield SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValueError:  # of pydantic
        if not is_answer:
            yield error_line(_id_of(value), INVALID_REQUEST, "Invalid Request: not a message of JSON-RPC 2.0")


def _id_of(value: Any) -> RequestId | None:
    found = value.get("id") if isinstance(value, dict) else None
    return found if _is_id(found) else None


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


def _refused(line: bytes, code: int, text: str) -> Iterator[bytes]:
    ids: Sequence[RequestId | None] = _readable_ids(line.decode(errors="replace"))
    for request_id in ids or [None]:
        yield error_line(request_id, code, text)


def _readable_ids(text: str) -> list[RequestId]:
    """Ids of the requests in a line that is not JSON: at the level where they belong, as far as it can be told."""
    found: dict[RequestId, None] = {}
    level = 2 if text.lstrip("\ufeff \t\r\n").startswith("[") else 1
    depth, before = 0, ("", "")
    for match in _TOKEN.finditer(text):
        part = match.group()
        if part == '"':  # a text without an end: the rest can't be told apart
            break
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(part, 0)
        if depth == level and before == ('"id"', ":"):
            _note(found, part)
        before = (before[1], part)
    last = _LAST_ID.search(text[-1024:])
    if last is not None and (not found or level == 2):
        _note(found, last.group(1))
    return [*found][:MAX_BATCH]


def _note(found: dict[RequestId, None], part: str) -> None:
    try:
        value = json.loads(part)
    except ValueError:
        return
    if _is_id(value):
        found[value] = None
