"""JSON-RPC messages between an MCP client and the bridge's servers: their kinds, and the bridge's own errors.

Guarantees that a message that is passed on is one JSON object on one line. Never changes what a message says.
"""

from typing import Any, Final

import msgspec

INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
SERVER_FAILED: Final = -32000
"""The server ended, or gave no answer in time."""

MessageId = str | int


class InvalidMessage(Exception):
    """The bytes are no JSON-RPC message. The text says why, and quotes nothing of them."""


class JsonRpcMessage(msgspec.Struct, frozen=True):
    """The members that decide where a message goes; a request has `method` and `id`, an answer `id` alone."""

    jsonrpc: str
    id: MessageId | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()

    @property
    def is_request(self) -> bool:
        """True if the sender waits for an answer."""
        return self.method is not None and self.id is not None

    @property
    def is_answer(self) -> bool:
        """True if it ends a request."""
        return self.method is None and self.id is not None


_decoder = msgspec.json.Decoder(JsonRpcMessage)
_whole = msgspec.json.Decoder()


def read_message(data: bytes) -> JsonRpcMessage:
    """The message in these bytes; an error may have no id (JSON-RPC 2.0, 5). Raises InvalidMessage."""
    try:
        _whole.decode(data)  # the decoder of a struct skips members that it does not know, and checks less in them
        message = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidMessage("this is no JSON-RPC message") from None
    if message.jsonrpc != "2.0":
        raise InvalidMessage("jsonrpc must be 2.0")
    if message.method is None and message.id is None and not message.error:
        raise InvalidMessage("a message needs a method or an id")
    return message


def as_line(data: bytes) -> bytes:
    """The same message on one line: in JSON a line break stands only between values.

    SECURITY: some readers of lines (readline of Node.js, Python) end one at U+2028, U+2029 or U+0085 too,
    which JSON texts may hold: the rest of a request's text would be a message of its own.
    """
    line = data.replace(b"\r", b" ").replace(b"\n", b" ")
    for character in "\u0085\u2028\u2029":
        line = line.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    return line + b"\n"


def error_body(identifier: MessageId | None, code: int, message: str) -> dict[str, Any]:
    """A JSON-RPC error; without an id where none could be read."""
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}


def refusal_line(identifier: MessageId, method: str) -> bytes:
    """The answer to a request of the server's own: the bridge answers `ping`, and has nothing else to offer."""
    if method == "ping":
        return msgspec.json.encode({"jsonrpc": "2.0", "id": identifier, "result": {}}) + b"\n"
    return msgspec.json.encode(error_body(identifier, METHOD_NOT_FOUND, "the bridge does not offer this")) + b"\n"


def cancelled_line(identifier: MessageId) -> bytes:
    """The notification that nothing waits for the answer to a request any more."""
    params = {"requestId": identifier, "reason": "no answer in time"}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}) + b"\n"
