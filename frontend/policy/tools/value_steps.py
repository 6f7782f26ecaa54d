"""The thresholds of an action in `gateway policy explain`: each with the value that it judges, and its outcome.

Caps are named and not judged: the running gateway alone knows what has been counted.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from frontend.files.problems import printable
from frontend.policy.by_values import by_values
from frontend.policy.data import PolicyData
from frontend.policy.question import Decision
from frontend.policy.value_rules import Outcome, Threshold


class ValueStep(msgspec.Struct, frozen=True):
    """One threshold. `value`: JSON text of what it judges, None without one; `outcome`: None where it is kept."""

    said: str
    value: str | None
    outcome: Outcome | None
    pointer: str


class ByValues(msgspec.Struct, frozen=True):
    """The data's rules about values of one action's requests."""

    decision: Decision | None
    """The decision that a gateway would make, thresholds included."""
    thresholds: tuple[ValueStep, ...] = ()
    caps: tuple[str, ...] = ()
    """Pointers of the caps, which are not judged here."""


def judged_by_values(decision: Decision | None, data: PolicyData, document: Mapping[str, Any]) -> ByValues:
    """The decision of the rules about this input document, after thresholds."""
    action_id, values = document["action_id"], document["request"]
    final = None if decision is None else by_values(decision, data, action_id, document["principal"], values)
    steps = tuple(_step(one, values) for one in data.thresholds.get(action_id, ()))
    return ByValues(final, steps, tuple(dict.fromkeys(one.pointer for one in data.caps.get(action_id, ()))))


def lines_of(found: ByValues, decision: Decision | None) -> Iterator[str]:
    """The same for people; `decision` is that of the rules alone."""
    if found.thresholds:
        yield ""
        yield "thresholds of data.json:"
    for step in found.thresholds:
        outcome = {"hold": "holds", "deny": "denies", None: "is kept"}[step.outcome]
        value = "is not there" if step.value is None else f"= {step.value}"
        yield f"  {outcome:<8}  {printable(step.said)}"
        yield f"              {printable(f'input.request[{json.dumps(step.pointer)}] {value}')}"
    if found.decision != decision and decision is not None:
        said = "hold" if decision.requires_approval else "allow"
        yield f"  the rules alone would {said} it, by rule {decision.rule}"
    if found.caps:
        yield ""
        yield f"caps of data.json, which the running gateway counts: {printable(', '.join(found.caps))}"


def untested(data: PolicyData) -> str:
    """A line that names the actions whose values no test in Rego judges; empty without such actions."""
    actions = sorted({*data.thresholds, *data.caps})
    if not actions:
        return ""
    named = printable(", ".join(actions))
    return f"no test sees the thresholds and caps of {named}: gateway policy explain shows them.\n"


def _step(threshold: Threshold, values: Mapping[str, Any]) -> ValueStep:
    value = msgspec.json.encode(values[threshold.pointer]).decode() if threshold.pointer in values else None
    said = f"{threshold.kind}: {threshold.said()}"
    return ValueStep(said, value, threshold.outcome(dict(values)), threshold.pointer)
