"""JSON pointers (RFC 6901) into parsed JSON."""

from typing import Any


def value_at(document: Any, pointer: str) -> Any:
    """The value that the pointer names. Raises LookupError."""
    value = document
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise LookupError(pointer)
    return value
