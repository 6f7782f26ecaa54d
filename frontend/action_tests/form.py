"""The form of `NAME.test.yaml`: a list of tests of the action whose manifest is `NAME.yaml` beside it.

Guarantees that any file gives tests or problems, all at once, and that a member this gateway does not know is refused.
Runs nothing.
"""

from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from contract.execution import VerificationOutcome
from frontend.files.problems import Report, did_you_mean, shown
from frontend.manifests.fields import Section, TextRule
from frontend.manifests.reading import read_file
from frontend.manifests.yamltree import Node

MAX_TESTS: Final = 256
"""Tests of one file."""
DECISIONS: Final = ("allow", "deny", "hold")
OUTCOMES: Final = get_args(VerificationOutcome)
UPSTREAM_ERRORS: Final = ("refused", "timeout")
SENDS: Final = ("method", "url", "headers", "body")

_NAME: Final = TextRule(r"[^\x00-\x1f\x7f-\x9f]+", "text of one line, at most 200 characters", 200)
_PRINCIPAL: Final = TextRule(
    r"[A-Za-z0-9][A-Za-z0-9._:@-]*", "letters, digits and . _ : @ -, beginning with a letter or digit", 256
)
_WORD: Final = TextRule(r"[a-z][a-z0-9_.]*", "a name of lower-case letters, digits, `_` and `.`", 128)
_TEXT: Final = TextRule(r".+", "text, at most 1024 characters", 1024)
_HEADER_NAME: Final = TextRule(r"[A-Za-z0-9-]+", "the name of a header", 128)
_HEADER_VALUE: Final = TextRule(r"[ -~]*", "printable ASCII, at most 4096 characters", 4096)


class PlayedUpstream(msgspec.Struct, frozen=True):
    """The answer of the action's upstream, which the test plays; with `error` it gives none."""

    status: int = 200
    headers: dict[str, str] = {}
    body: Any = None
    """A text is sent as it is, any other value as JSON; None: no body."""
    error: str = ""
    """One of UPSTREAM_ERRORS: no connection, or no answer."""
    tool: dict[str, Any] | None = None
    """For an MCP server, the tool as the server lists it. `body` is the result of its call."""


class ExpectedDecision(msgspec.Struct, frozen=True):
    """The expected preview of a call. An empty or absent member is not compared."""

    decision: str = ""
    rule: str = ""
    deny_reason: str = ""
    error: str = ""
    """The code of a refusal without a decision, such as schema_violation."""
    sends: dict[str, Any] = {}


class ActionTest(msgspec.Struct, frozen=True):
    """One test: a call, and all that is expected of it."""

    name: str
    principal: str
    request: Any
    expect: ExpectedDecision
    upstream: PlayedUpstream | None
    result: dict[str, Any] | None
    outcome: str
    file: str
    line: int

    @property
    def is_run(self) -> bool:
        """True for a test that runs the call, after its preview."""
        return self.upstream is not None or self.result is not None or bool(self.outcome)


def read_tests(path: Path, report: Report) -> list[ActionTest]:
    """The tests of one file; of no use if `report` has problems afterwards."""
    tree = read_file(path, report)
    if tree is None:
        return []
    if not isinstance(tree.value, list) or not tree.value:
        report.add(tree.line, "", "a file of tests must be a list.", "Begin each test with `- name: …`.")
        return []
    if len(tree.value) > MAX_TESTS:
        report.add(tree.line, "", f"the file has more than {MAX_TESTS} tests.", "Divide it.")
    tests = [_test(node, index, report) for index, node in enumerate(tree.value[:MAX_TESTS])]
    names: set[str] = set()
    for test in tests:
        if test.name in names:
            report.add(test.line, "name", f"a test before has the name {shown(test.name)}.", "Give it another.")
        names.add(test.name)
    return tests


def _test(node: Node, index: int, report: Report) -> ActionTest:
    section = Section(node, (index,), report)
    test = ActionTest(
        name=section.text("name", _NAME),
        principal=section.text("principal", _PRINCIPAL),
        request=section.plain("request") if section.has("request") else {},
        expect=_expect(section),
        upstream=_upstream(section),
        result=section.mapping("result"),
        outcome=section.choice("outcome", OUTCOMES, ""),
        file=report.file,
        line=node.line,
    )
    section.refuse_unknown()
    if test.is_run and (test.expect.decision == "deny" or test.expect.error):
        field = "upstream" if test.upstream else "result" if test.result is not None else "outcome"
        message = f"{section.field(field)}: a call that is denied or refused does not run."
        report.add(section.line_of(field), field, message, "Remove it, or expect allow or hold.")
    return test


def _expect(test: Section) -> ExpectedDecision:
    test.require("expect", "a mapping with the decision, or with the error of a refused request")
    section = test.section("expect")
    if section is None:
        return ExpectedDecision()
    expected = ExpectedDecision(
        decision=section.choice("decision", DECISIONS, ""),
        rule=section.text("rule", _WORD, ""),
        deny_reason=section.text("deny_reason", _TEXT, ""),
        error=section.text("error", _WORD, ""),
        sends=_sends(section),
    )
    section.refuse_unknown()
    if section.has("decision") is section.has("error"):
        message = f"{test.field('expect')} must have one of decision and error."
        mend = "Write decision: allow, deny or hold; or error: the code of the refusal."
        test.report.add(test.line_of("expect"), "expect", message, mend)
    return expected


def _sends(expect: Section) -> dict[str, Any]:
    """The members of `sends` as they are written; a null body stands for no body."""
    section = expect.section("sends")
    members = expect.mapping("sends") or {}
    for name in members if section else ():
        if name not in SENDS:
            message = f"unknown field {shown(name)} in {expect.field('sends')}."
            expect.report.add(section.line_of(name) if section else 0, name, message, did_you_mean(name, SENDS))
    return members


def _upstream(test: Section) -> PlayedUpstream | None:
    section = test.section("upstream")
    if section is None:
        return None
    headers = section.section("headers")
    names = () if headers is None else headers.names(_HEADER_NAME)
    played = PlayedUpstream(
        status=section.integer("status", 200, 200, 599),
        headers={} if headers is None else {name: headers.text(name, _HEADER_VALUE) for name in names},
        body=section.plain("body"),
        error=section.choice("error", UPSTREAM_ERRORS, ""),
        tool=section.mapping("tool"),
    )
    section.refuse_unknown()
    for name in ("status", "headers", "body", "tool"):
        if played.error and section.has(name):
            message = f"{section.field(name)}: an upstream with an error does not answer."
            test.report.add(section.line_of(name), name, message, "Remove one of them.")
    return played
