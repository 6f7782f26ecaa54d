"""Reads off a compiled policy which fields of `input` its decision depends on.

Owns the rule of when a decision may be answered from memory: the decision is a function of fields that are known by
name, and of nothing else. It is read from the compiled program, which is what the evaluator runs, and not from the
text: there the whole input is one variable, and every use of it can be looked at. Fails closed: a use, a statement or
a built-in that is not listed here makes the reading unknown. Runs nothing.
"""

from collections.abc import Iterator

import msgspec

from workers.rego.nodes import children, leaf_text, type_name

_INPUT, _DATA = "0", "1"
"""Variables that hold the input and the data in every function of a program."""

_PURE_FAMILIES = {
    "": "abs and ceil concat contains count div endswith equal floor format_int gt gte indexof indexof_n intersection "
    "is_array is_boolean is_null is_number is_object is_set is_string lower lt lte max min minus mul neq or plus "
    "product rem replace round sort split sprintf startswith substring sum to_number trim trim_left trim_prefix "
    "trim_right trim_space trim_suffix type_name union upper walk",
    "array": "concat reverse slice",
    "base64": "decode encode is_valid",
    "base64url": "decode encode encode_no_pad",
    "bits": "and lsh negate or rsh xor",
    "glob": "match quote_meta",
    "graph": "reachable reachable_paths",
    "hex": "decode encode",
    "internal": "member_2 member_3 template_string",
    "json": "filter is_valid marshal patch remove unmarshal",
    "numbers": "range range_step",
    "object": "filter get keys remove subset union union_n",
    "regex": "find_all_string_submatch_n find_n globs_match is_valid match replace split template_match",
    "semver": "compare is_valid",
    "strings": "any_prefix_match any_suffix_match count replace_n reverse",
    "units": "parse parse_bytes",
    "urlquery": "decode decode_object encode encode_object",
    "yaml": "is_valid marshal unmarshal",
}
PURE = frozenset(
    f"{family}.{name}" if family else name for family, names in _PURE_FAMILIES.items() for name in names.split()
)
"""Built-ins that give the same for the same arguments and do nothing else. Left out are those that look at the clock
or the world (`time`, `rand`, `uuid`, `http`, `net`, `opa`, `io.jwt`, `crypto`, `rego`) and those that write (`print`,
`trace`)."""

_STATEMENTS = frozenset(
    f"rego-{name}stmt"
    for name in (
        "arrayappend", "assignint", "assignvar", "assignvaronce", "block", "break", "call", "dot", "equal", "isarray",
        "isdefined", "isobject", "isset", "isundefined", "len", "makearray", "makenull", "makenumberint",
        "makenumberref", "makeobject", "makeset", "not", "notequal", "objectinsert", "objectinsertonce", "objectmerge",
        "resetlocal", "resultsetadd", "returnlocal", "scan", "setadd",
    )
)  # fmt: skip
"""Nodes that are understood. `with` changes the input, and a dynamic call names its rule at run time."""


class FieldReads(msgspec.Struct, frozen=True):
    """`fields` of the input, sorted; or None, and `unknown` is a sentence that says why."""

    fields: tuple[str, ...] | None
    unknown: str | None = None


class _Unknown(Exception):
    """The reading of `input` can't be told; the text says what stands against it."""


def reads_of_bundle(bundle: int) -> FieldReads:
    """Which fields of the input a compiled bundle reads, on any way from its entry points."""
    try:
        return FieldReads(tuple(sorted(_Scan(bundle).run())))
    except _Unknown as reason:
        return FieldReads(None, str(reason))


class _Scan:
    """One walk through the plans of a bundle and every function that they can reach."""

    def __init__(self, bundle: int) -> None:
        self._strings: list[str] = []
        self._plans: list[int] = []
        self._functions: dict[str, int] = {}
        self._fields: set[str] = set()
        self._seen: set[str] = set()
        self._waiting: list[str] = []
        for part in children(bundle):
            if type_name(part) == "rego-policy":
                for section in children(part):
                    self._note(section)

    def _note(self, section: int) -> None:
        kind = type_name(section)
        if kind == "rego-static":
            for table in children(section):
                if type_name(table) == "rego-stringseq":
                    self._strings += map(leaf_text, children(table))
        elif kind == "rego-planseq":
            self._plans += children(section)
        elif kind == "rego-functionseq":
            self._functions |= {leaf_text(next(children(node))): node for node in children(section)}

    def run(self) -> set[str]:
        """The names of the fields. Raises _Unknown."""
        if not self._plans:
            raise _Unknown("the compiled program has an unknown form")
        for plan in self._plans:
            self._walk(plan, "the decision")
        while self._waiting:
            name = self._waiting.pop()
            function = self._functions[name]
            self._check_parameters(function)
            self._walk(function, name.removeprefix("g0."))
        return self._fields

    def _walk(self, node: int, rule: str) -> None:
        """Everything below `node`: statements one by one, and whatever else names a variable."""
        for child in children(node):
            kind = type_name(child)
            if kind == "rego-parameterseq":
                continue  # run() has looked at these
            if kind == "rego-dotstmt":
                self._dot(child, rule)
            elif kind == "rego-callstmt":
                self._call(child, rule)
            elif kind.endswith("stmt") and kind not in _STATEMENTS:
                what = {"rego-withstmt": "uses `with`", "rego-calldynamicstmt": "names a rule by a variable"}
                raise _Unknown(f"{rule} {what.get(kind, f'uses {kind}')}")
            elif kind == "rego-localindex":
                _refuse_input(child, rule)
            else:
                self._walk(child, rule)

    def _dot(self, statement: int, rule: str) -> None:
        """`source[key]` into a variable: the one way in which input may be used."""
        source, key, target = _three(statement)
        _refuse_input(target, rule)
        if not _is_variable(source, _INPUT):
            self._walk(statement, rule)
            return
        (name,) = children(key)
        if type_name(name) != "rego-stringindex":
            raise _Unknown(f"{rule} reads a field of input whose name is a variable")
        self._fields.add(self._strings[int(leaf_text(name))].strip('"'))

    def _call(self, statement: int, rule: str) -> None:
        callee, operands, target = _three(statement)
        name, arguments = leaf_text(callee), list(children(operands))
        _refuse_input(target, rule)
        if name in self._functions:
            if len(arguments) < 2 or not _is_variable(arguments[0], _INPUT) or not _is_variable(arguments[1], _DATA):
                raise _Unknown(f"{rule} calls {name} in an unknown way")
            arguments = arguments[2:]
            if name not in self._seen:
                self._seen.add(name)
                self._waiting.append(name)
        elif name not in PURE:
            raise _Unknown(f"{rule} uses {name}, whose value may change from call to call, or which has an effect")
        for argument in arguments:
            self._walk(argument, rule)

    def _check_parameters(self, function: int) -> None:
        """Every function has input and data as its first two variables, else this file misunderstands it."""
        for part in children(function):
            if type_name(part) == "rego-parameterseq":
                variables = [leaf_text(one) for one in children(part)]
                # A parameter that is named `input` must not take its place for what runs behind the call.
                if variables[:2] == [_INPUT, _DATA] and _INPUT not in variables[2:]:
                    return
                break
        raise _Unknown("the compiled program has an unknown form")


def _three(statement: int) -> Iterator[int]:
    parts = list(children(statement))
    if len(parts) != 3:
        raise _Unknown("the compiled program has an unknown form")
    return iter(parts)


def _is_variable(operand: int, number: str) -> bool:
    parts = list(children(operand))
    return len(parts) == 1 and type_name(parts[0]) == "rego-localindex" and leaf_text(parts[0]) == number


def _refuse_input(node: int, rule: str) -> None:
    """SECURITY: what is not a field by its name is the input as a whole, wherever it goes from here."""
    if type_name(node) == "rego-localindex" and leaf_text(node) == _INPUT:
        raise _Unknown(f"{rule} uses input as a whole")
