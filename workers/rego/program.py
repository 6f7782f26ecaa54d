"""Reads a compiled policy back and refuses what the evaluator would quietly get wrong.

rego-cpp compiles a misspelt name, or a `not` inside `every`, into a variable that nothing sets; the expression around
it then is undefined and its negation true: a policy that seems to deny would allow. Other engines refuse such names at
compile time, so this file does: a variable that is read must be set somewhere in its function, every call must have a
target, no rule may reach itself, and nothing may reach outside (network, environment).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from workers.rego.nodes import children, leaf_text, type_name

OUTSIDE = frozenset({"http.send", "net.lookup_ip_addr", "opa.runtime"})
"""Built-ins that a decision must not depend on."""

_MAX_PROBLEMS = 8


@dataclass
class _Function:
    """One compiled rule or function: its use of variables, and its calls."""

    name: str
    set_locals: set[str] = field(default_factory=set)
    read_locals: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Variable -> (source of the operand, source of the statement around it), where it is first read."""
    calls: dict[str, str] = field(default_factory=dict)
    """Callee -> source of the first statement that calls it."""


@dataclass
class Program:
    """The part of a compiled program that is inspected."""

    functions: dict[str, _Function] = field(default_factory=dict)
    builtins: set[str] = field(default_factory=set)
    highest_index: int = -1
    """Highest index into the table of constants."""

    @property
    def missing_variables(self) -> int:
        """How many variables the program lacks to be run.

        The engine checks an index into the constants against the number of variables (rego-cpp 1.5.2: "raw index 12 >=
        local_count 11"), and refuses small policies that hold a number. Variables that are never used satisfy it.
        """
        used = {int(local) for function in self.functions.values() for local in function.set_locals}
        return max(0, self.highest_index - max(used, default=-1))


def read_program(bundle: int) -> Program:
    """Read a compiled bundle back."""
    program = Program()
    for section in sections(bundle):
        kind = type_name(section)
        if kind == "rego-functionseq":
            for node in children(section):
                function = _Function(leaf_text(next(children(node))))
                _collect(node, program, function, "", is_operand=False)
                program.functions[function.name] = function
        elif kind == "rego-static":
            program.builtins |= set(_builtin_names(section))
    return program


def sections(bundle: int) -> Iterator[int]:
    """The parts of a compiled program: constants, plans, functions."""
    for part in children(bundle):
        # The data is as large as data.json and holds nothing to check.
        if type_name(part) == "rego-policy":
            yield from children(part)


def program_problems(program: Program, modules: Mapping[str, str]) -> list[str]:
    """Sentences, with file and line where the source could be found; empty for a sound program."""
    functions, builtins = program.functions, program.builtins
    problems = [f"{name}: a decision may not use it" for name in sorted(OUTSIDE & builtins)]
    for function in functions.values():
        for local, (operand, statement) in function.read_locals.items():
            if local not in function.set_locals:
                problems.append(f"{place_of(statement, operand, function.name, modules)}: {_unset(operand, statement)}")
        for callee, statement in function.calls.items():
            if callee not in functions and callee not in builtins:
                problems.append(f"{place_of(statement, callee, function.name, modules)}: there is no function {callee}")
    problems += [f"{_shown(name)}: reaches itself (recursion)" for name in _recursive(functions)]
    return sorted(set(problems))[:_MAX_PROBLEMS]


def _builtin_names(static: int) -> Iterator[str]:
    for sequence in children(static):
        if type_name(sequence) == "rego-builtinfunctionseq":
            for node in children(sequence):
                yield leaf_text(next(children(node)))


def _collect(node: int, program: Program, function: _Function, statement: str, *, is_operand: bool) -> None:
    """Walk one function. An index inside an operand is read; one that stands in a statement itself may be set."""
    for child in children(node):
        kind = type_name(child)
        if kind == "rego-localindex":
            if is_operand:
                function.read_locals.setdefault(leaf_text(child), (leaf_text(node), statement))
            else:
                function.set_locals.add(leaf_text(child))
        elif kind == "rego-int32":
            program.highest_index = max(program.highest_index, int(leaf_text(child)))
        else:
            inner = leaf_text(child) if kind.endswith("stmt") else statement
            if kind == "rego-callstmt":
                function.calls.setdefault(leaf_text(next(children(child))), inner)
            _collect(child, program, function, inner, is_operand=kind == "rego-operand")


def _recursive(functions: dict[str, _Function]) -> list[str]:
    """Names of functions on a cycle of calls, found without recursion of our own."""
    names: list[str] = []
    for start in functions:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for callee in functions[waiting.pop()].calls:
                if callee == start:
                    names.append(start)
                    waiting.clear()
                    break
                if callee in functions and callee not in seen:
                    seen.add(callee)
                    waiting.append(callee)
    return names


def _shown(name: str) -> str:
    return name.removeprefix("g0.")


def _unset(operand: str, statement: str) -> str:
    # Names with a dollar are the compiler's own: nothing that the author wrote.
    texts = [" ".join(text.split())[:100].rstrip(";") for text in (operand, statement) if text and "$" not in text]
    quoted = " in ".join(f'"{text}"' for text in dict.fromkeys(texts)) or "a name"
    return f"{quoted} never gets a value: misspelt, or used in a way that this evaluator gets wrong"


def place_of(statement: str, operand: str, function: str, modules: Mapping[str, str]) -> str:
    """`file:line (rule)`: of the statement where its text stands in one place alone, else of the rule's first head."""
    rule = _shown(function)
    head = rf"^{re.escape(rule.rpartition('.')[2])}\b"
    for pattern in (re.escape(statement), re.escape(operand), head):
        places = [
            (file, match.start()) for file, source in modules.items() for match in re.finditer(pattern, source, re.M)
        ]
        if pattern and (len(places) == 1 or (places and pattern is head)):
            file, position = places[0]
            return f"{file}:{modules[file].count(chr(10), 0, position) + 1} ({rule})"
    return rule
