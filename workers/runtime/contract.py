"""Holds a compiled component against the provider interface: what it imports, and what it exports as `run`.

The linker of wasmtime's Python API takes a host function for any type that a guest claims; so the types are compared
here, once, when a module is mapped. Guarantees that host functions only ever see arguments of their own types.
"""

from collections.abc import Iterator

from wasmtime import Engine, component

from workers.interfaces import ENTRY, ENTRY_TYPE, FUNCTIONS, INTERFACES, TYPES

_SCALARS: dict[type[object], str] = {
    component.Bool: "bool", component.S8: "s8", component.U8: "u8", component.S16: "s16", component.U16: "u16",
    component.S32: "s32", component.U32: "u32", component.S64: "s64", component.U64: "u64", component.F32: "f32",
    component.F64: "f64", component.Char: "char", component.String: "string",
}  # fmt: skip
_BY_NAME = {name: short for short, name in INTERFACES.items()}


MAX_PARTS = 200
"""Parts of a function's type that are looked at. The largest of the interface has fewer than fifty; a stranger's may
have a hundred thousand in a few lines, by types that hold the one before twice."""


class ContractBroken(Exception):
    """The component is no provider of this interface; the message says where it differs, for people."""


def check_contract(engine: Engine, compiled: component.Component) -> frozenset[str]:
    """Short names of the interfaces it imports. Raises ContractBroken for any import or `run` of another type."""
    with compiled.type as shape:
        interfaces = [_interface(engine, name, item.ty) for name, item in shape.imports(engine).items()]
        exported = shape.exports(engine).get(ENTRY)
        if exported is None:
            raise ContractBroken(f"exports no function {ENTRY!r}")
        if describe(exported.ty) != ENTRY_TYPE:
            raise ContractBroken(f"exports {ENTRY!r} with another type than the interface")
    return frozenset(name for name in interfaces if name)


def _interface(engine: Engine, name: str, item: object) -> str | None:
    if not isinstance(item, component.ComponentInstanceType):
        if isinstance(item, component.ValType):
            return None
        raise ContractBroken(f"imports {name}, which is no interface of a provider")
    short = _BY_NAME.get(name)
    if short is None and name != TYPES:
        raise ContractBroken(f"imports {name}, which is no interface of a provider")
    expected = FUNCTIONS[short] if short else {}
    for function, entry in item.exports(engine).items():
        kind = entry.ty
        if isinstance(kind, component.ValType):
            continue
        if function not in expected:
            raise ContractBroken(f"imports {name} with {function!r}, which it does not have")
        if describe(kind) != expected[function]:
            raise ContractBroken(f"imports {name} with {function!r} of another type")
    return short


def describe(item: object) -> str:
    """A type as text, close to WIT; `unknown` for what no provider needs (resources, streams, flags, variants). Raises
    ContractBroken for one of more than MAX_PARTS."""
    return _described(item, iter(range(MAX_PARTS)))


def _described(item: object, left: Iterator[int]) -> str:
    if next(left, None) is None:
        raise ContractBroken("its types are too large")
    match item:
        case component.FuncType():
            params = ", ".join(f"{name}: {_described(kind, left)}" for name, kind in item.params)
            result = item.result
            return f"func({params})" + (f" -> {_described(result, left)}" if result is not None else "")
        case component.RecordType():
            return "record{" + ", ".join(f"{name}: {_described(kind, left)}" for name, kind in item.fields) + "}"
        case component.EnumType():
            return "enum{" + ", ".join(item.names) + "}"
        case component.ResultType():
            cases = (_described(kind, left) if kind is not None else "_" for kind in (item.ok, item.err))
            return f"result<{', '.join(cases)}>"
        case component.OptionType():
            return f"option<{_described(item.payload, left)}>"
        case component.ListType():
            return f"list<{_described(item.element, left)}>"
        case component.TupleType():
            return "tuple<" + ", ".join(_described(kind, left) for kind in item.elements) + ">"
    return _SCALARS.get(type(item), "unknown")
