"""The JSON that the program for signing keys prints for the supervisor: ids, times and paths, no key."""

import msgspec


class RotatedKey(msgspec.Struct, frozen=True):
    """`previous_until`: when the key before verifies nothing any more; None: that time does not come."""

    purpose: str
    key_id: str
    path: str
    previous_key_id: str
    previous_until: str | None


class KeyRow(msgspec.Struct, frozen=True):
    """One key. `state` is current or previous; `path` its own file, or the set that lists its public half."""

    purpose: str
    state: str
    key_id: str
    created_at: str | None
    retired_at: str | None
    path: str


class KeyProblem(msgspec.Struct, frozen=True):
    """A problem of a key, or (`in_set`) with the set of public keys beside it."""

    purpose: str
    in_set: bool
    sentence: str


class BackendProblem(msgspec.Struct, frozen=True):
    """A backend of the notary that can't be used now: the setting that names it, and why."""

    setting: str
    sentence: str
