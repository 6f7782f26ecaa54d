"""Notes of a handler beyond the types of its signature (frontend/api/operation.py reads both).

`@codes(...)` above it lists the error codes that it or a service it asks may answer, beside those that every row of
its kind may answer anyway; without one there is `@codes()`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from frontend.errors import STATUS

Handler = TypeVar("Handler", bound=Callable[..., Any])

CODES: dict[Callable[..., Any], tuple[str, ...]] = {}


def codes(*names: str) -> Callable[[Handler], Handler]:
    """List the codes that a handler may answer. Raises KeyError for one that the error table does not have."""
    for name in names:
        STATUS[name]

    def note(handler: Handler) -> Handler:
        CODES[handler] = names
        return handler

    return note


class StatusCode:
    """In `Annotated[Struct, Status(202)]` of a return type: the status that this struct is answered with, else 200."""

    def __init__(self, status: int) -> None:
        self.status = status


class ReadsBody:
    """In `Annotated[Request, Reads(Struct)]` of a parameter: the JSON body, which the handler reads itself."""

    def __init__(self, body: Any) -> None:
        self.body = body


class Media:
    """In `Annotated[Answer, Media(...)]` of a return type: an answer that the handler writes itself."""

    def __init__(self, content_type: str, description: str, schema: dict[str, Any] | None = None) -> None:
        self.content_type = content_type
        self.description = description
        self.schema = schema or {"type": "string"}


class WrittenAs:
    """In `Annotated[Answer, WrittenAs(Struct)]` of a return type: the handler writes the JSON of this struct itself."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self.kind = kind
