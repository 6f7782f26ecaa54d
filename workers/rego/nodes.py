"""Reading access to the trees that rego-cpp gives out: compiled programs and errors. Knows nothing of their meaning."""

import ctypes
from collections.abc import Iterator

from regopy import rego_shared

_lib = rego_shared.rego
# The names' sizes that the library reports are too small for its own check, so one buffer serves for all of them.
_name = ctypes.create_string_buffer(256)


def type_name(node: int) -> str:
    """Name of the node's kind, as `rego-notstmt`."""
    _lib.regoNodeTypeName(node, _name, len(_name))
    return _name.value.decode()


def leaf_text(node: int) -> str:
    """The node's own text: of a leaf its value, of a statement the source that it came from."""
    text: str = rego_shared.rego_node_value(node)
    return text


def children(node: int) -> Iterator[int]:
    """Nodes directly below."""
    for index in range(_lib.regoNodeSize(node)):
        yield _lib.regoNodeGet(node, index)
