"""What a front may ask the notary for."""

import msgspec


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Base of all operations. Each says in its docstring what it answers."""
