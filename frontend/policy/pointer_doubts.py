"""Denied actions and values of requests that a policy names and no manifest has: `gateway check` and `gateway policy
check` warn of them.

An action offers the JSON pointers in its manifest's `policy_input`. Reads the text of rules, so it may err; it refuses
nothing. Asks no engine.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from frontend.policy.acl import PolicyFiles
from frontend.policy.doubts import meant
from frontend.policy.rules import blanked

_STRING = r'("(?:\\.|[^"\\\n])*"|`[^`]*`)'
_POINTER = r'("/(?:\\.|[^"\\\n])*"|`/[^`]*`)'
_READ = re.compile(rf"\binput\.request(?:\s*\[\s*{_STRING}\s*\]|\s*,\s*{_POINTER}|\.(\w+))")
"""`input.request["/a"]`, `object.get(input.request, "/a", …)`, and the mistake `input.request.a`."""


def pointer_doubts(files: PolicyFiles, offered: Mapping[str, Sequence[str]]) -> list[str]:
    """Each doubt as `file:line: sentence`. `offered`: action -> the pointers that it offers."""
    return [*_of_data(files, offered), *_of_rules(files.sources.modules, offered)]


def _of_data(files: PolicyFiles, offered: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for action_id in files.data.denied_actions:
        if action_id not in offered:
            yield f"data.json: denied_actions.{action_id}: no manifest has this action{meant(action_id, offered)}"
    for section, rules in (("thresholds", files.data.thresholds), ("caps", files.data.caps)):
        for action_id, given in rules.items():
            if action_id not in offered:
                yield f"data.json: {section}.{action_id}: no manifest has this action{meant(action_id, offered)}"
                continue
            known = offered[action_id]
            for pointer in dict.fromkeys(rule.pointer for rule in given):
                if pointer not in known:
                    said = f"{pointer} is not in the policy_input of the action's manifest"
                    yield f"data.json: {section}.{action_id}: {said}{meant(pointer, known)}"


def _of_rules(modules: Mapping[str, str], offered: Mapping[str, Sequence[str]]) -> Iterator[str]:
    known = {pointer for pointers in offered.values() for pointer in pointers}
    for file, source in modules.items():
        plain = blanked(source)
        for read in _READ.finditer(source):
            if not plain.startswith("input.request", read.start()):
                continue  # in a comment or a text
            line, (at, got, member) = source.count("\n", 0, read.start()) + 1, read.groups()
            if member is not None:
                said = f"the members of input.request are JSON pointers{meant(f'/{member}', known)}"
                yield f"{file}:{line}: input.request.{member}: {said}"
            elif (pointer := _text(at or got)) is not None and pointer not in known:
                yield f"{file}:{line}: {pointer} is in the policy_input of no action{meant(pointer, known)}"


def _text(string: str) -> str | None:
    """The value of a string in Rego; None for one that is not valid."""
    try:
        return string[1:-1] if string.startswith("`") else str(json.loads(string))
    except ValueError:
        return None
