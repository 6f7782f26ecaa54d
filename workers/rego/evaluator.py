"""Compiles one policy and evaluates `data.gateway.decision` over inputs, through the C interface of rego-cpp.

Guarantees that every failure of the engine is an exception with a sentence, never a value: conflicts, undefined
decisions, errors inside a value. Hands the decision over as JSON text and never interprets it. Not thread-safe, and
a policy may crash or hang the process: that is why it has one of its own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from regopy import Interpreter, LogLevel, RegoError, rego_shared

from workers.rego.diagnostics import error_of_answer, explained, spelling_problems, texts_below
from workers.rego.form import form_problems
from workers.rego.inputs import program_input_problems
from workers.rego.program import program_problems, read_program
from workers.rego.reads import FieldReads, reads_of_bundle
from workers.rego.values import Input, canonical_json
from workers.rego.withs import with_problems

DECISION = "data.gateway.decision"

_lib = rego_shared.rego
_ENTRY = "gateway/decision"
_PREFIX = '{"expressions":['
_SUFFIX = "]}"
_PADDING_FILE = "(padding)"
_HAS_PACKAGE = re.compile(r"^\s*package\s+gateway\s*(#.*)?$", re.MULTILINE)


class PolicyError(Exception):
    """The candidate is not a policy that may be used. `problems` are sentences, with file and line where known."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class EvaluationError(Exception):
    """The engine failed, or the decision is undefined. The text is for logs."""


class CompiledPolicy:
    """One policy with its data, ready to be asked."""

    def __init__(self, modules: Mapping[str, str], data: str, more: Sequence[str] = ()) -> None:
        """Compile.

        `modules` maps file name to Rego, `data` is the JSON text of data.json, `more` names further rules that `value`
        will be asked for (`gateway/denial`). Raises PolicyError with everything that is wrong, as far as it can be told
        without running the policy.
        """
        # The text after a stray bracket can't be judged.
        problems = form_problems(modules) or spelling_problems(modules) + with_problems(modules)
        if problems:
            raise PolicyError(problems)
        if not any(_HAS_PACKAGE.search(source) for source in modules.values()):
            raise PolicyError([f"no file holds `package gateway`, which must define {DECISION}"])
        entries = (_ENTRY, *more)
        self._interpreter, self._bundle = _compiled(modules, data, entries)
        program = read_program(_lib.regoBundleNode(self._bundle._impl))
        problems = program_problems(program, modules)
        if problems:
            raise PolicyError(problems)
        if program.missing_variables:
            padding = {_PADDING_FILE: _padding(program.missing_variables)}
            self._interpreter, self._bundle = _compiled({**modules, **padding}, data, entries)

    @property
    def reads(self) -> FieldReads:
        """Which fields of the input its answers depend on, read from the program that is run."""
        return reads_of_bundle(_lib.regoBundleNode(self._bundle._impl))

    def input_problems(self, modules: Mapping[str, str]) -> list[str]:
        """Sentences about fields of the input that are read and that no question has; `modules` are what it is of."""
        return program_input_problems(_lib.regoBundleNode(self._bundle._impl), modules)

    def evaluate(self, document: dict[str, Any]) -> str:
        """Return the decision as JSON text, exactly as the engine wrote it.

        Raises EvaluationError without one, NotAValue when `document` can't be an input.
        """
        text = self.value(document, _ENTRY)
        if text is None:
            raise EvaluationError(f"{DECISION} is undefined for this input")
        return text

    def value(self, document: dict[str, Any], entry: str) -> str | None:
        """The value of one rule as JSON text, None when it is undefined. Raises EvaluationError, NotAValue."""
        value = Input(document)
        try:
            failed = _lib.regoSetInput(self._interpreter._impl, value.pointer)
            if not failed and value.text is not None:
                failed = _lib.regoSetInputTerm(self._interpreter._impl, value.text)
            if failed:
                raise EvaluationError("the engine refused the input")
        finally:
            value.free()
        output = _lib.regoBundleQueryEntrypoint(self._interpreter._impl, self._bundle._impl, entry.encode())
        if not output:
            raise EvaluationError("the engine gave no answer")
        try:
            return _value_text(output)
        finally:
            _lib.regoFreeOutput(output)


def _compiled(modules: Mapping[str, str], data: str, entries: Sequence[str]) -> tuple[Any, Any]:
    interpreter = Interpreter()
    interpreter.log_level = LogLevel.NONE
    # SECURITY: without it a failing built-in is merely undefined, and `not` of undefined is true.
    interpreter.strict_built_in_errors = True
    _add_modules(interpreter, modules)
    _add_data(interpreter, data)
    return interpreter, _build(interpreter, entries)


def _padding(variables: int) -> str:
    """Rego with that many variables in a package of its own, which no decision reaches."""
    lines = "".join(f"\tv{number} := input\n" for number in range(variables))
    return f"package padding_of_the_gateway\n\nimport rego.v1\n\npadding if {{\n{lines}}}\n"


def _add_modules(interpreter: Any, modules: Mapping[str, str]) -> None:
    problems: list[str] = []
    for name, source in modules.items():
        try:
            interpreter.add_module(name, source)
        except RegoError as error:
            problems += explained(str(error), name, modules)
    if problems:
        raise PolicyError(problems)


def _add_data(interpreter: Any, data: str) -> None:
    try:
        document = json.loads(data)
        interpreter.add_data_json(canonical_json(document))
    except (ValueError, RecursionError, RegoError) as error:
        raise PolicyError([f"data.json: {str(error)[:300]}"]) from None


def _build(interpreter: Any, entries: Sequence[str]) -> Any:
    try:
        bundle = interpreter.build(None, list(entries))
    except RegoError as error:
        raise PolicyError([str(error)[:300]]) from None
    if not bundle._impl:
        raise PolicyError([f"the compiler gave up without a reason; is {DECISION} defined?"])
    if not bundle.ok():
        raise PolicyError(texts_below(_lib.regoBundleNode(bundle._impl)) or ["the compiler gave no reason"])
    return bundle


def _value_text(output: int) -> str | None:
    if not rego_shared.rego_output_ok(output):
        raise EvaluationError("; ".join(texts_below(_lib.regoOutputNode(output))) or "the engine failed")
    text: str = rego_shared.rego_output_string(output)
    if text.startswith(_PREFIX) and text.endswith(_SUFFIX):
        return text[len(_PREFIX) : -len(_SUFFIX)]
    if text == "undefined":
        return None
    raise EvaluationError(error_of_answer(text) or "the engine's answer has an unknown form")
