"""The base of the interface's nouns, and notes on their fields: the gateway's promises, and a client's tolerance.

A field without a default must be given to make the answer, and is always sent. A field whose default is LEFT_OUT is
sent only where it is given. The OpenAPI document follows from the same (frontend/api/openapi/schemas.py). A client
ignores members that it does not know, takes any value of a literal's type, and reads as None a missing member that may
be null (gateway_client/wire/decoding.py).
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta

T = TypeVar("T")

LEFT_OUT: Any = UNSET
"""The default of a member that is left out of an answer unless it is given. A client reads a missing one as None."""
NEVER_NULL = Meta(extra={"is_never_null": True})
NeverNull = Annotated[T | None, NEVER_NULL]
"""A member that the gateway never sends as null. It is None to a client that does not get it, from an earlier gateway,
say."""
Listed = Annotated[tuple[T, ...], NEVER_NULL]
"""An array that is empty to a client that does not get it."""


class Noun(msgspec.Struct, frozen=True, kw_only=True):
    """One object of the interface."""

    raw: Mapping[str, Any] = LEFT_OUT
    """In a client: the JSON as the gateway sent it. Never sent."""

    def __repr__(self) -> str:
        """Every field but `raw`."""
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The fields, for printers of objects, without `raw`."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name != "raw"]


def shown_as(kind: type[msgspec.Struct]) -> Meta:
    """For an object that is made elsewhere, or kept as it was stored, or a list of such: what the document says."""
    return Meta(extra={"shows": kind})
