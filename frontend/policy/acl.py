"""The files of a policy: reads `policy_dir` whole or not at all, and shows who may do what.

Every problem that can be seen without an engine is named at once, with its file and line. Never writes and never asks
an engine.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from frontend.policy.data import PolicyData, parse_data
from frontend.policy.engine import PolicyRefused, PolicySources

MAX_POLICY_BYTES = 1024 * 1024
"""All files together. A megabyte of data takes one to two seconds to compile, and questions wait meanwhile."""

MAX_POLICY_FILES = 64
RISK_LEVELS = ("low", "medium", "high", "critical")

_DATA = "data.json"


class PolicyFiles(msgspec.Struct, frozen=True):
    """A policy folder: what an engine needs, and its data as the front reads it."""

    sources: PolicySources
    data: PolicyData


def read_policy(policy_dir: str) -> PolicyFiles:
    """Read `*.rego` (but not `*_test.rego`), sorted by name, and data.json.

    Raises PolicyRefused with every problem found, each as `file:line: sentence`.
    """
    folder = Path(policy_dir)
    problems: list[str] = []
    try:
        names = sorted(entry.name for entry in folder.iterdir() if _belongs(entry.name) and entry.is_file())
    except OSError as error:
        raise PolicyRefused((f"{folder}: {error.strerror}",)) from None
    if not any(name.endswith(".rego") for name in names):
        problems.append(f"{folder}: holds no *.rego file")
    if len(names) > MAX_POLICY_FILES:
        raise PolicyRefused((f"{folder}: more than {MAX_POLICY_FILES} files",))
    texts = _read_all(folder, names, problems)
    data = _parse_data(folder / _DATA, texts.pop(_DATA, None), problems)
    if problems or data is None:
        raise PolicyRefused(tuple(problems))
    text, value = data
    return PolicyFiles(PolicySources(texts, text, value.policy_version), value)


def _belongs(name: str) -> bool:
    if not name.isprintable() or name.startswith("."):
        return False
    return name == _DATA or (name.endswith(".rego") and not name.endswith("_test.rego"))


def _read_all(folder: Path, names: list[str], problems: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    left = MAX_POLICY_BYTES
    for name in names:
        content = b""
        try:
            with (folder / name).open("rb") as file:
                content = file.read(left + 1)
            left -= len(content)
            if left < 0:
                raise PolicyRefused((f"{folder}: more than {MAX_POLICY_BYTES} bytes of policy",))
            texts[name] = content.decode()
        except OSError as error:
            problems.append(f"{folder / name}: {error.strerror}")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            problems.append(f"{folder / name}:{line}: is not UTF-8")
    return texts


def _parse_data(path: Path, text: str | None, problems: list[str]) -> tuple[str, PolicyData] | None:
    if text is None:
        if not any(problem.startswith(str(path)) for problem in problems):
            problems.append(f"{path}: is missing")
        return None
    found = parse_data(text)
    if isinstance(found, PolicyData):
        return text, found
    problems += [f"{path}{problem}" for problem in found]
    return None


def acl_view(data: PolicyData) -> dict[str, Any]:
    """The full ACL: `policy_version`, `principals`, and the same under the names that some clients read (`acl`)."""
    return {
        "policy_version": data.policy_version,
        "principals": {
            name: {"actions": sorted(entry.actions), "sinks": sorted(entry.sinks)} for name, entry in data.acl.items()
        },
        "acl": {
            name: {"allowed_actions": sorted(entry.actions), "allowed_sinks": sorted(entry.sinks)}
            for name, entry in data.acl.items()
        },
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
        "actions": actions,
        "sinks": sorted(entry.sinks),
        "risk_breakdown": {
            level: [action for action in actions if risk_levels.get(action) == level] for level in RISK_LEVELS
        },
    }
