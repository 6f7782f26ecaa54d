"""Changes of a policy's data: who may call what, and who needs no approval. Pure: data in, data out.

Guarantees that a grant takes no permission away, that sinks follow from the actions alone, and that the rest of
data.json stays as its author wrote it. Never touches a file, never asks an engine.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from frontend.policy.acl import MAX_POLICY_BYTES, PolicyFiles
from frontend.policy.data import MAX_VERSION, AclEntry, PolicyData, parse_data
from frontend.policy.engine import PolicySources
from frontend.policy.sinks import Sinks
from ipc.texts.canonical import canonical_bytes, sha256_hex

WILDCARD = "*"

_SECTIONS = ("acl", "allowlist", "denied_actions")
_OF_VALUES = ("thresholds", "caps")
_MARK = re.compile(r"\+[0-9a-f]{8}$")
_MARK_LENGTH = 9

V = TypeVar("V")


class NothingThere(Exception):
    """No such principal, or no such exception from approval."""


class PolicyTooLarge(Exception):
    """More than a policy may have."""


def grant(data: PolicyData, principal: str, actions: Iterable[str], sinks_of: Sinks) -> PolicyData:
    """Let `principal` call these actions too.

    A first entry keeps what the principal had from the wildcard until then: a grant never takes anything away.
    """
    entry = data.acl.get(principal)
    if entry is None:
        entry = AclEntry((), (), inherits_wildcard=principal != WILDCARD and WILDCARD in data.acl)
    return _with_entry(data, principal, entry, (*entry.actions, *sorted(actions)), sinks_of)


def revoke(data: PolicyData, principal: str, actions: Iterable[str], sinks_of: Sinks) -> PolicyData:
    """Take these actions from `principal`: it may not call them any more, whichever entry allowed them.

    Its entry goes with the last action (docs/contract.md, "Endpoints") where nothing comes back with that. Where
    the wildcard allows one of them too, the entry stands by itself from now on, with what is left of both; and one that
    keeps the wildcard from its principal stays, empty or not. Raises NothingThere for a principal without an entry that
    the wildcard allows none of them.
    """
    taken = set(actions)
    shared = data.acl.get(WILDCARD) if principal != WILDCARD else None
    entry = data.acl.get(principal)
    if entry is None:
        if shared is None or taken.isdisjoint(shared.actions):
            raise NothingThere(principal)
        entry = AclEntry((), (), inherits_wildcard=True)
    if shared is not None and entry.inherits_wildcard and not taken.isdisjoint(shared.actions):
        both = (*entry.actions, *shared.actions)
        entry = msgspec.structs.replace(entry, actions=both, inherits_wildcard=False)
    left = [name for name in entry.actions if name not in taken]
    keeps_away = shared is not None and not entry.inherits_wildcard
    if left or keeps_away or not entry.actions:
        return _with_entry(data, principal, entry, left, sinks_of)
    return msgspec.structs.replace(data, acl=_without(data.acl, principal))


def allow(data: PolicyData, action_id: str, agent_id: str) -> PolicyData:
    """Spare this pair the approval."""
    agents = {**data.allowlist.get(action_id, {}), agent_id: True}
    return msgspec.structs.replace(data, allowlist={**data.allowlist, action_id: agents})


def disallow(data: PolicyData, action_id: str, agent_id: str) -> PolicyData:
    """Ask for approval again; an action goes with its last agent. Raises NothingThere."""
    agents = data.allowlist.get(action_id, {})
    if agent_id not in agents:
        raise NothingThere(f"{action_id}, {agent_id}")
    left = _without(agents, agent_id)
    whole = {**data.allowlist, action_id: left} if left else _without(data.allowlist, action_id)
    return msgspec.structs.replace(data, allowlist=whole)


def rewritten(files: PolicyFiles, data: PolicyData) -> PolicyFiles:
    """The policy `files` with what operators change of `data`, and a version that tells it from every other.

    Raises PolicyTooLarge.
    """
    document: dict[str, Any] = json.loads(files.sources.data)
    for section in ("acl", "allowlist", *_OF_VALUES):
        before, after = getattr(files.data, section), getattr(data, section)
        if after != before:
            kept = document.get(section, {})
            document[section] = {
                name: kept[name] if before.get(name) == value else msgspec.json.decode(msgspec.json.encode(value))
                for name, value in after.items()
            }
    document["policy_version"] = _version(document)
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    sources = PolicySources(files.sources.modules, text, document["policy_version"])
    if sum(len(part.encode()) for part in (text, *sources.modules.values())) > MAX_POLICY_BYTES:
        raise PolicyTooLarge(f"the policy would have more than {MAX_POLICY_BYTES} bytes")
    parsed = parse_data(text)
    assert isinstance(parsed, PolicyData)  # what is read as it stood can be read as it is written
    return PolicyFiles(sources, parsed)


def _with_entry(
    data: PolicyData, principal: str, entry: AclEntry, actions: Iterable[str], sinks_of: Sinks
) -> PolicyData:
    names = tuple(dict.fromkeys(actions))
    sinks = sinks_of(names)
    # As it was written, unless it says something else.
    listed = entry.sinks if set(entry.sinks) == sinks else tuple(sorted(sinks))
    changed = msgspec.structs.replace(entry, actions=names, sinks=listed)
    return msgspec.structs.replace(data, acl={**data.acl, principal: changed})


def _without(whole: Mapping[str, V], name: str) -> dict[str, V]:
    return {key: value for key, value in whole.items() if key != name}


def _version(document: Mapping[str, Any]) -> str:
    base = _MARK.sub("", str(document["policy_version"]))[: MAX_VERSION - _MARK_LENGTH]
    decides = {section: document.get(section, {}) for section in _SECTIONS}
    decides |= {section: document[section] for section in _OF_VALUES if document.get(section)}
    digest = sha256_hex(canonical_bytes(decides)).removeprefix("sha256:")
    return f"{base}+{digest[:8]}"
