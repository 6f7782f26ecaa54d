"""`python -m frontend.policy.tools.command --channel-fd N --parent PID test|explain …`: the output of `gateway policy`.

The supervisor starts it beside a policy examiner and ties the two together. Reads files, asks the examiner, writes to
standard output; leaves with an exit code of ipc/process/exits.py. Text from a file is escaped before it is shown.
"""

import argparse
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from setproctitle import setproctitle

from frontend.files.problems import FileProblem, printable
from frontend.policy.acl import PolicyFiles, read_policy
from frontend.policy.engine import PolicyRefused
from frontend.policy.problems import policy_problems
from frontend.policy.sinks import believed, for_engine
from frontend.policy.tools.examiner import ExaminerClient, ExaminerLost
from frontend.policy.tools.explain import ExplainStep, Explanation, explain
from frontend.policy.tools.question_file import QuestionRefused, read_question
from frontend.policy.tools.testing import Tried, run_tests
from frontend.policy.tools.value_steps import ByValues, judged_by_values, lines_of, untested
from ipc.messages.checking import ExplainedInput
from ipc.process.exits import Exit
from ipc.process.output import flushed, tell
from ipc.process.parent import die_with_parent, refuse_core_dumps

_SHOWN_VALUE = 160
_NOTE = "values of the other rules of package gateway (the evaluator tells values, not the way that it took):"


def test(options: argparse.Namespace, examiner: ExaminerClient) -> int:
    """Run the Rego tests of a folder and print each outcome as it comes."""
    tried: list[Tried] = []
    try:
        unseen = untested(read_policy(options.folder).data)
        for one in run_tests(options.folder, examiner):
            tried.append(one)
            if not options.json:
                print("\n".join(_test_lines(one)), flush=True)
    except PolicyRefused as refused:
        return _refused(policy_problems(refused.problems, options.folder), is_json=options.json)
    failed = sum(not one.is_passed for one in tried)
    if options.json:
        print(msgspec.json.encode({"tests": tried, "passed": len(tried) - failed, "failed": failed}).decode())
    elif not tried:
        print(f"{options.folder}: no tests: rules named test_… in *_test.rego.")
    else:
        print(f"{len(tried)} test{'s' * (len(tried) != 1)}, {len(tried) - failed} passed, {failed} failed.")
    if not options.json:
        print(unseen, end="")
    return Exit.OK if tried and not failed else Exit.FAILED


def _test_lines(one: Tried) -> Iterator[str]:
    place = f"{printable(one.file)}:{one.line}"
    if one.is_passed:
        yield f"{place}  pass  {one.name}  {one.seconds * 1000:.0f} ms"
    else:
        yield f"{place}  FAIL  {one.name} {one.said}"
    for line in one.printed.splitlines():
        yield f"    {printable(line)}"


def explain_question(options: argparse.Namespace, examiner: ExaminerClient) -> int:
    """Print why the policy of a folder decides the question in a file as it does."""
    try:
        asked = _asked(options)
    except QuestionRefused as refused:
        return _refused(refused.problems, is_json=options.json)
    document = asked.document
    try:
        policy = _believed(read_policy(options.folder), asked)
        explanation = explain(policy, document, examiner)
        found = judged_by_values(explanation.decision, policy.data, document)
    except PolicyRefused as refused:
        return _refused(policy_problems(refused.problems, options.folder), is_json=options.json)
    if options.json:
        whole = {**msgspec.to_builtins(explanation), "by_rules": explanation.decision, **msgspec.structs.asdict(found)}
        whole |= {"input": document, "assumed": asked.assumed}
        print(msgspec.json.encode(whole).decode())
    else:
        print("\n".join([*_explained(explanation, found, document, options.folder), *_assumed(asked)]))
    return Exit.OK if explanation.decision else Exit.FAILED


def _believed(policy: PolicyFiles, asked: ExplainedInput) -> PolicyFiles:
    """The policy as a gateway uses it, where the manifests are known: with the sinks that they declare."""
    if asked.sinks is None:
        return policy
    declared = asked.sinks
    files = believed(policy, lambda actions: frozenset(sink for name in actions for sink in declared.get(name, ())))
    return msgspec.structs.replace(files, sources=for_engine(files))


def _asked(options: argparse.Namespace) -> ExplainedInput:
    """The question in a file, or the one that was made. Raises QuestionRefused."""
    if options.asked_fd is None:
        return ExplainedInput(read_question(Path(options.input)))
    with os.fdopen(options.asked_fd, "rb") as file:
        asked = msgspec.json.decode(file.read(), type=ExplainedInput)
    if asked.problem:
        raise QuestionRefused([FileProblem("", 0, "", asked.problem, "")])
    return asked


def _assumed(asked: ExplainedInput) -> Iterator[str]:
    if asked.assumed:
        yield ""
        yield "assumed:"
        for sentence in asked.assumed:
            yield f"  {printable(sentence)}"


def _explained(
    explanation: Explanation, found: ByValues, document: dict[str, object], folder: str
) -> Iterator[str]:  # fmt: skip
    decision = found.decision
    if decision is None:
        yield f"NO DECISION: {printable(explanation.error)} (the call would be 503 policy_engine_unavailable)"
    elif not decision.allow:
        yield f"DENIED by rule {decision.rule}: {printable(decision.deny_reason)}"
    elif decision.requires_approval:
        yield f"HELD by rule {decision.rule}: an operator decides"
    else:
        yield f"ALLOWED by rule {decision.rule}"
    version = f", version {decision.policy_version}" if decision else ""
    asked = f"{document['principal']} asks for {document['action_id']} {document['action_version']}"
    yield f"  {printable(asked)}; policy {printable(folder)}{printable(version)}"
    if explanation.trail:
        yield ""
        width = max(len(step.rule) for step in explanation.trail)
        has_decided = False
        for step in explanation.trail:
            yield from _step_lines(step, width, is_behind=has_decided)
            has_decided = has_decided or step.is_deciding
        if explanation.decision and not has_decided:
            yield f"→ {explanation.decision.rule:<{width}}  the decision when no rule above applies"
    elif explanation.values:
        yield ""
        yield _NOTE
        for value in explanation.values:
            shown = {"value": f"= {_short(value.text)}", "undefined": "is undefined"}.get(value.outcome, value.text)
            yield f"  {printable(value.file)}:{value.line}  {value.rule} {printable(shown)}"
    yield from lines_of(found, explanation.decision)


def _step_lines(step: ExplainStep, width: int, *, is_behind: bool) -> Iterator[str]:
    """One rule; those behind the one that decided say what they would have said."""
    if step.applies is None:
        said = f"can't be told: {printable(step.said)}"
    elif is_behind:
        said = "not reached; would apply" if step.applies else "not reached"
    else:
        said = "applies" if step.applies else "does not apply"
    yield f"{'→' if step.is_deciding else ' '} {step.rule:<{width}}  {said}"
    if is_behind and not step.applies:
        return
    for read in step.reads:
        value = "is not there" if read.value is None else f"= {_short(read.value)}"
        yield f"  {'':<{width}}    {printable(f'{read.name} {value}')}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 1] + "…"


def _refused(problems: Iterable[FileProblem], *, is_json: bool) -> int:
    listed = list(problems)
    if is_json:
        print(msgspec.json.encode({"problems": listed}).decode())
    else:
        print("\n".join([*map(str, listed), f"{len(listed)} problem{'s' * (len(listed) != 1)}."]))
    return Exit.CONFIG


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns an exit code."""
    parser = argparse.ArgumentParser(prog="frontend.policy.tools.command", allow_abbrev=False)
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    commands = parser.add_subparsers(required=True)
    tests = commands.add_parser("test")
    tests.set_defaults(run=test)
    explaining = commands.add_parser("explain")
    where = explaining.add_mutually_exclusive_group(required=True)
    where.add_argument("--input")
    where.add_argument("--asked-fd", type=int)
    explaining.set_defaults(run=explain_question)
    for command in (tests, explaining):
        command.add_argument("--folder", required=True)
        command.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    refuse_core_dumps()
    setproctitle("gateway: policy command")
    with socket.socket(fileno=options.channel_fd) as sock:
        sock.set_inheritable(False)
        try:
            return flushed(int(options.run(options, ExaminerClient(sock))))
        except ExaminerLost as lost:
            tell(f"{lost}.")
            return Exit.FAILED
        except BrokenPipeError:
            return flushed(Exit.FAILED)


if __name__ == "__main__":
    sys.exit(main())
