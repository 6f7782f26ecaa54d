"""data.json of a policy: its shape, and a strict reading of it (docs/policy.md, "Data").

A typing error in access control must be loud: unknown fields of an entry, names that can't occur, a name given twice
are problems with their line. Other names at the top level belong to the policy's author.
"""

import json
import re
import sys
from typing import Annotated, Any

import msgspec

from frontend.policy.value_rules import MAX_RULES, Cap, Threshold, told
from ipc.configuration.quotas import NO_QUOTA, Quota
from ipc.limits import MAX_DEPTH_JSON
from ipc.texts.scalars import is_held_whole

MAX_VERSION = 128

_PRINCIPAL = re.compile(r"\*|[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}")
_ACTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")


def is_principal(name: str) -> bool:
    """Whether this can be the name of a principal, or `*`."""
    return _PRINCIPAL.fullmatch(name) is not None


def is_action(name: str) -> bool:
    """Whether this can be the id of an action."""
    return _ACTION.fullmatch(name) is not None


class AclEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The actions that one principal may call, and the sinks that it may reach."""

    actions: tuple[str, ...]
    sinks: tuple[str, ...] = ()
    inherits_wildcard: bool = False


class QuotaData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quotas (ipc/configuration/quotas.py)."""

    default: Quota = NO_QUOTA
    """The quota of every principal without a quota of its own."""


class PolicyData(msgspec.Struct, frozen=True):
    """The part of data.json that the default policy and the gateway itself read."""

    policy_version: str
    acl: dict[str, AclEntry] = {}
    """Principal, or `*` for those without an entry."""
    allowlist: dict[str, dict[str, bool]] = {}
    """Action -> principal -> true: no hold."""
    denied_actions: dict[str, str] = {}
    """Action -> the reason why no principal may call it."""
    limits: QuotaData = QuotaData()
    thresholds: dict[str, tuple[Threshold, ...]] = {}
    caps: dict[str, tuple[Cap, ...]] = {}


_SECTIONS: dict[str, Any] = {
    "acl": AclEntry,
    "allowlist": dict[str, bool],
    "denied_actions": str,
    "thresholds": Annotated[tuple[Threshold, ...], msgspec.Meta(max_length=MAX_RULES)],
    "caps": Annotated[tuple[Cap, ...], msgspec.Meta(max_length=MAX_RULES)],
}
_ONE_OF_EACH = {"thresholds": "pointer and rule", "caps": "pointer, per and window_seconds"}
"""Sections about values of requests -> by which members a rule of an action is known (`place`)."""


def parse_data(text: str) -> PolicyData | list[str]:
    """Parse and check the text of data.json. Returns it, or problems that begin with `:line: ` or `: `."""
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
        text.encode()
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return [f":{error.lineno}: {error.msg}"]
    except UnicodeEncodeError:
        return [": holds half a surrogate pair"]
    except _BadName as error:
        return [f":{_line_of(text, error.name, error.name)}: {error}"]
    except RecursionError:
        return [f": nested deeper than {MAX_DEPTH_JSON}"]
    except _NoConstant as error:
        return [f": {error}"]
    except ValueError:  # of an integer alone
        return [f": a number has more than {sys.get_int_max_str_digits()} digits"]
    if not isinstance(document, dict):
        return [":1: must be an object"]
    if _depth(document) > MAX_DEPTH_JSON:
        return [f": nested deeper than {MAX_DEPTH_JSON}"]
    problems = _structure_problems(document, text)
    if any(section in document for section in _ONE_OF_EACH):
        problems += _rounded_numbers(text)
    return problems or msgspec.convert(document, PolicyData)


def _structure_problems(document: dict[str, Any], text: str) -> list[str]:
    problems: list[str] = []

    def note(sentence: str, *keys: str) -> None:
        problems.append(f":{_line_of(text, *keys)}: {'.'.join(keys)}: {sentence}")

    version = document.get("policy_version")
    if not isinstance(version, str) or not 0 < len(version) <= MAX_VERSION or not version.isprintable():
        note(f"must be a string of 1 to {MAX_VERSION} printable characters", "policy_version")
    if "gateway" in document:
        note("is the name of the package that decides", "gateway")
    for section, kind in _SECTIONS.items():
        value = document.get(section, {})
        if not isinstance(value, dict):
            note("must be an object", section)
            continue
        for name, item in value.items():
            if not (_PRINCIPAL if section == "acl" else _ACTION).fullmatch(name):
                note("is not a name that can occur", section, name)
            try:
                rules = msgspec.convert(item, kind)
            except msgspec.ValidationError as error:
                note(told(error), section, name)
                continue
            if section in _ONE_OF_EACH and len({one.place for one in rules}) < len(rules):
                note(f"has two with the same {_ONE_OF_EACH[section]}", section, name)
    try:
        msgspec.convert(document.get("limits", {}), QuotaData)
    except msgspec.ValidationError as error:
        note(str(error), "limits")
    return problems


def _rounded_numbers(text: str) -> list[str]:
    """Problems with numbers of thresholds and caps that would be compared as other numbers than stand there."""
    document = json.loads(text, parse_float=_Written)
    problems = []
    for section in _ONE_OF_EACH:
        waiting = [document.get(section)]
        while waiting:
            item = waiting.pop()
            waiting += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
            if isinstance(item, _Written) and not is_held_whole(item):
                problems.append(f":{_line_of(text, section)}: {section}: {item} has more digits than can be compared")
    return problems


class _Written(str):
    """The text of a number, as it stands there."""

    __slots__ = ()


class _NoConstant(ValueError):
    pass


class _BadName(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f'"{name}" appears twice in one object')
        self.name = name


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise _BadName(name)
        members[name] = value
    return members


def _refuse_constant(name: str) -> None:
    raise _NoConstant(f"{name} is not JSON")


def _depth(value: object) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        deepest = max(deepest, depth)
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        waiting += [(part, depth + 1) for part in inner]
    return deepest


def _line_of(text: str, *keys: str) -> int:
    """Line where the last of nested keys stands, looking for each behind the one before it; 1 when it is not there."""
    position = 0
    for key in keys:
        match = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:").search(text, position)
        if match is None:
            break
        position = match.end()
    return text.count("\n", 0, position) + 1
