"""Why a policy decided as it did (`gateway policy explain`): its decision, and what became of its single rules.

A policy whose rules are conditions named `applies_NAME`, as those of the default policy are, has a trail: each
condition is asked of the evaluator by itself, and shown with the values that it reads. For any other policy the values
of its rules are shown. The evaluator reports values, not the steps of an evaluation, so only values are shown.
"""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from frontend.errors import GateError
from frontend.policy.acl import PolicyFiles
from frontend.policy.question import Decision, parse_decision
from frontend.policy.references import MISSING, NoValue, resolve
from frontend.policy.rules import RegoRule, reads_of, rules_of
from frontend.policy.tools.examiner import ExaminerClient
from ipc.messages.checking import Evaluated

PACKAGE = "gateway"
CONDITION = "applies_"
_DECISION = "decision"


class Read(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of input or data that a rule reads. `value` is JSON text, None if the part does not exist."""

    name: str
    value: str | None


class ExplainStep(msgspec.Struct, frozen=True):
    """One condition. `applies` is None when the evaluator could not say; `said` is why."""

    rule: str
    applies: bool | None
    is_deciding: bool
    said: str
    file: str
    line: int
    reads: tuple[Read, ...]


class Value(msgspec.Struct, frozen=True):
    """One rule of a policy without conditions. `outcome`: see ipc/messages/checking.py; `text`: JSON, or the error."""

    rule: str
    outcome: str
    text: str
    file: str
    line: int


class Explanation(msgspec.Struct, frozen=True):
    """Without a decision `decision` is None, `error` says why, and the call would be 503."""

    decision: Decision | None
    error: str
    trail: tuple[ExplainStep, ...]
    values: tuple[Value, ...]


def explain(policy: PolicyFiles, document: dict[str, Any], examiner: ExaminerClient) -> Explanation:
    """Ask. Raises PolicyRefused when a gateway would not use the policy, ExaminerLost."""
    modules = policy.sources.modules
    rules = rules_of(modules)
    ours = [rule for rule in rules.values() if rule.package == PACKAGE and not rule.is_function]
    conditions = [rule for rule in ours if rule.name.startswith(CONDITION)]
    others = [] if conditions else [rule for rule in ours if rule.name != _DECISION]
    examiner.compile(modules, policy.sources.data, [rule.entry for rule in conditions or others])
    decision, error = _decided(examiner.value(f"{PACKAGE}/{_DECISION}", document))
    deciding = decision.rule if decision else ""
    data = json.loads(policy.sources.data)
    steps = []
    for rule in conditions:
        answer = examiner.value(rule.entry, document)
        reads = _reads(rule, rules, document, data)
        steps.append(_step(rule, answer, deciding, reads))
    values = [_value(rule, examiner.value(rule.entry, document)) for rule in others]
    return Explanation(decision, error, tuple(steps), tuple(values))


def _decided(answer: Evaluated) -> tuple[Decision | None, str]:
    if answer.outcome == "value":
        try:
            return parse_decision(answer.text), ""
        except GateError as error:
            return None, str(error.cause)
    if answer.outcome == "undefined":
        return None, "data.gateway.decision is undefined for this input"
    return None, answer.text


def _step(rule: RegoRule, answer: Evaluated, deciding: str, reads: tuple[Read, ...]) -> ExplainStep:
    name = rule.name.removeprefix(CONDITION)
    applies: bool | None = None
    if answer.outcome == "undefined":
        applies = False
    elif answer.outcome == "value":
        # A condition is a body: every value but false counts as true to the rule that asks for it.
        applies = answer.text != "false"
    said = "" if applies is not None else answer.text
    return ExplainStep(name, applies, name == deciding, said, rule.file, rule.line, reads)


def _value(rule: RegoRule, answer: Evaluated) -> Value:
    return Value(rule.name, answer.outcome, answer.text, rule.file, rule.line)


def _reads(rule: RegoRule, rules: dict[tuple[str, str], RegoRule], document: Any, data: Any) -> tuple[Read, ...]:
    """The references that the rule reads, each once: a part that exists stands for the whole, otherwise the whole
    for the part."""
    reads: dict[str, Read] = {}
    for reference in reads_of(rule, rules):
        try:
            shown, value = resolve(reference, document, data)
        except NoValue:
            continue
        reads[shown] = Read(shown, None if value is MISSING else json.dumps(value, ensure_ascii=False))
    return tuple(read for read in reads.values() if not _is_told(read, reads.values()))


def _is_told(read: Read, others: Iterable[Read]) -> bool:
    for other in others:
        if other.value is None and read.name.startswith((f"{other.name}.", f"{other.name}[")):
            return True
        if read.value is not None and other.name.startswith((f"{read.name}.", f"{read.name}[")):
            return True
    return False
