"""The files of a policy: reads `policy_dir` whole or not at all, and shows who may do what.

Every problem that can be seen without an engine is named at once, with its file and line. Never writes and never asks
an engine.
"""

import codecs
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from frontend.files.claimed import FileNotReadable, claimed_names, read_regular
from frontend.files.closed import why_closed
from frontend.policy.data import AclEntry, PolicyData, parse_data
from frontend.policy.doubts import Doubt, doubts_of
from frontend.policy.engine import PolicyRefused, PolicySources
from frontend.policy.patterns import pattern_problems

MAX_POLICY_BYTES = 1024 * 1024
"""All files together. A megabyte of data takes one to two seconds to compile, and questions wait meanwhile."""

MAX_POLICY_FILES = 64
RISK_LEVELS = ("low", "medium", "high", "critical")

DATA_FILE = "data.json"
UNUSED = "is not used: the OPA of opa_url has the rules"


class PolicyFiles(msgspec.Struct, frozen=True):
    """A policy folder: what an engine needs, and its data as the front reads it."""

    sources: PolicySources
    data: PolicyData
    doubts: tuple[Doubt, ...] = ()
    """Doubts that were found while it was read; it may be used all the same."""


def read_policy(policy_dir: str, *, has_rules: bool = True) -> PolicyFiles:
    """Read `*.rego` (but not `*_test.rego`), sorted by name, and data.json; without `has_rules` data.json alone, and
    each file of rules is a doubt: OPA has the rules.

    Raises PolicyRefused with every problem found, each as `file:line: sentence`.
    """
    folder = Path(policy_dir)
    problems: list[str] = []
    try:
        names, refusals = claimed_names(folder, _belongs)
        if not has_rules:
            refusals = claimed_names(folder, {DATA_FILE}.__contains__)[1]
    except OSError as error:
        raise PolicyRefused((f"{folder}: {why_closed(folder, error)}",)) from None
    problems += [f"{folder / one.name}: {one.problem} {one.mend}" for one in refusals]
    rules = [name for name in names if name.endswith(".rego")]
    if has_rules and not rules:
        problems.append(f"{folder}: holds no *.rego file")
    if len(names) > MAX_POLICY_FILES:
        raise PolicyRefused((f"{folder}: more than {MAX_POLICY_FILES} files",))
    texts = read_texts(folder, names if has_rules else set(names) - set(rules), problems)
    data = _parse_data(folder / DATA_FILE, texts.pop(DATA_FILE, None), problems)
    problems += [f"{folder}/{problem}" for problem in pattern_problems(texts)]
    if problems or data is None:
        raise PolicyRefused(tuple(problems))
    text, value = data
    doubts = doubts_of(texts, text)
    if not has_rules:
        doubts += tuple(Doubt(f"{name}:1: {UNUSED}", is_mistake=False) for name in rules)
    return PolicyFiles(PolicySources(texts, text, value.policy_version), value, doubts)


def _belongs(name: str) -> bool:
    return name == DATA_FILE or (name.endswith(".rego") and not name.endswith("_test.rego"))


def read_texts(folder: Path, names: Iterable[str], problems: list[str]) -> dict[str, str]:
    """File name -> text. Each file that can't be read adds a sentence to `problems`. Raises PolicyRefused over a
    megabyte."""
    texts: dict[str, str] = {}
    left = MAX_POLICY_BYTES
    for name in names:
        content = b""
        try:
            content = read_regular(folder / name, left + 1)
            left -= len(content)
            if left < 0:
                raise PolicyRefused((f"{folder}: more than {MAX_POLICY_BYTES} bytes of policy",))
            content = content.removeprefix(codecs.BOM_UTF8)
            texts[name] = content.decode()
        except FileNotReadable as error:
            problems.append(f"{folder / name}: {error}")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            problems.append(f"{folder / name}:{line}: is not UTF-8")
    return texts


def _parse_data(path: Path, text: str | None, problems: list[str]) -> tuple[str, PolicyData] | None:
    if text is None:
        if not any(problem.startswith(str(path)) for problem in problems):
            problems.append(f"{path}: is missing")
        return None
    parsed = parse_data(text)
    if isinstance(parsed, PolicyData):
        return text, parsed
    problems += [f"{path}{problem}" for problem in parsed]
    return None


def acl_view(data: PolicyData) -> dict[str, Any]:
    """The full ACL: `policy_version`, `principals`, and the same under the names that some clients read (`acl`); then
    the rest of the data that decides: the agents that need no approval, and the actions that no principal may call."""
    return {
        "policy_version": data.policy_version,
        "principals": {name: entry_view(entry) for name, entry in data.acl.items()},
        "acl": {
            name: {"allowed_actions": sorted(entry.actions), "allowed_sinks": sorted(entry.sinks)}
            for name, entry in data.acl.items()
        },
        "allowlist": {
            action_id: sorted(agent for agent, is_spared in agents.items() if is_spared)
            for action_id, agents in data.allowlist.items()
        },
        "denied_actions": data.denied_actions,
    }


def entry_view(entry: AclEntry) -> dict[str, Any]:
    """One entry."""
    return {
        "actions": sorted(entry.actions),
        "sinks": sorted(entry.sinks),
        "inherits_wildcard": entry.inherits_wildcard,
    }


def principal_view(data: PolicyData, principal: str, risk_levels: Mapping[str, str]) -> dict[str, Any] | None:
    """One principal's own entry with its actions by risk level, or None without an entry.

    `risk_levels` maps the registered actions to theirs; an action that is not registered stands under no level.
    """
    entry = data.acl.get(principal)
    if entry is None:
        return None
    actions = sorted(entry.actions)
    return {
        "principal": principal,
        **entry_view(entry),
        "risk_breakdown": {
            level: [action for action in actions if risk_levels.get(action) == level] for level in RISK_LEVELS
        },
        "policy_version": data.policy_version,
    }
