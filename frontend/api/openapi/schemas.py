"""JSON Schemas of the structs that parse requests and make answers, with the descriptions of their docstrings."""

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from contract.noun import NEVER_NULL
from frontend.contract.forms import END

PREFIX = "#/components/schemas/"


def components_of(requests: Iterable[Any], answers: Iterable[Any]) -> dict[str, Any]:
    """Schemas by name of every struct that these types hold. Raises ValueError when two structs share a name.

    A member with a default may be missing from a request; in an answer only what can be UNSET may.
    """
    asked, answered = structs_in(requests), structs_in(answers)
    components: dict[str, Any] = {}
    for kind in {**asked, **answered}:
        name = kind.__name__
        if name in components:
            raise ValueError(f"two structs are named {name}")
        schema = msgspec.json.schema_components([kind], ref_template=PREFIX + "{name}")[1][name]
        components[name] = _described(_with_shown_ends(schema), kind, is_answer=kind not in asked)
    return dict(sorted(components.items()))


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of one type; structs are referred to."""
    ((schema,), _components) = msgspec.json.schema_components([kind], ref_template=PREFIX + "{name}")
    return schema


def structs_in(kinds: Iterable[Any]) -> dict[type[msgspec.Struct], None]:
    """Every struct that these types hold, at any depth, or that a note says they show. In order, each once."""
    structs: dict[type[msgspec.Struct], None] = {}
    waiting = [msgspec.inspect.type_info(kind) for kind in kinds]
    while waiting:
        for node in _nodes(waiting.pop(0)):
            kind = None
            if isinstance(node, msgspec.inspect.StructType):
                kind = node.cls
            elif isinstance(node, msgspec.inspect.Metadata) and node.extra:
                kind = node.extra.get("shows")
            if kind is not None and kind not in structs:
                structs[kind] = None
                info = msgspec.inspect.type_info(kind)
                assert isinstance(info, msgspec.inspect.StructType)
                waiting += [field.type for field in info.fields]
    return structs


def _nodes(node: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    """The node and those inside it, without those inside structs."""
    yield node
    match node:
        case msgspec.inspect.Metadata():
            yield from _nodes(node.type)
        case msgspec.inspect.UnionType():
            for part in node.types:
                yield from _nodes(part)
        case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
            yield from _nodes(node.item_type)
        case msgspec.inspect.DictType():
            yield from _nodes(node.value_type)
        case msgspec.inspect.TupleType():
            for part in node.item_types:
                yield from _nodes(part)
        case _:
            return


def _described(schema: dict[str, Any], kind: type[msgspec.Struct], *, is_answer: bool) -> dict[str, Any]:
    del schema["title"]
    schema["description"] = one_line(inspect.getdoc(kind) or "")
    docs = field_docs(kind)
    required = set(schema.pop("required", ()))
    omits = kind.__struct_config__.omit_defaults
    members = schema["properties"]
    members.pop("raw", None)
    for field in msgspec.structs.fields(kind):
        if field.name == "raw":
            continue
        member = members[field.encode_name] = _shown_as(field.type) or members[field.encode_name]
        if field.name in docs:
            member["description"] = docs[field.name]
        if is_answer:
            member.pop("default", None)
            if field.default is not msgspec.UNSET and not omits:
                required.add(field.encode_name)
    if required:
        schema["required"] = [name for name in schema["properties"] if name in required]
    return schema


def _shown_as(hint: Any) -> dict[str, Any] | None:
    """The schema that a note on a field puts in the place of its own."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        for extra in (note.extra for note in notes if isinstance(note, msgspec.Meta) and note.extra):
            if "schema" in extra:
                return dict(extra["schema"])
            if "shows" in extra:
                reference = {"$ref": PREFIX + extra["shows"].__name__}
                return {"type": "array", "items": reference} if get_origin(kind) in (list, tuple) else reference
        if NEVER_NULL in notes:
            return schema_of(_without_null(kind))
    elif type(None) in get_args(hint):
        shown = next(filter(None, map(_shown_as, get_args(hint))), None)
        return None if shown is None else {"anyOf": [shown, {"type": "null"}]}
    return None


def _without_null(kind: Any) -> Any:
    parts = [part for part in get_args(kind) if part is not type(None)] if get_origin(kind) is Union else [kind]
    return Union[tuple(parts)]  # noqa: UP007


def _with_shown_ends(schema: Any) -> Any:
    """The same schema with patterns that end as every dialect of regular expressions ends them."""
    if isinstance(schema, list):
        return [_with_shown_ends(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    shown = {name: _with_shown_ends(value) for name, value in schema.items()}
    if isinstance(shown.get("pattern"), str):
        shown["pattern"] = shown["pattern"].replace(END, "$")
    return shown


@functools.cache
def field_docs(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The docstring below each field, by the field's name; those of its bases included."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not issubclass(base, msgspec.Struct) or base is msgspec.Struct:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[name] = one_line(doc)
    return docs


def one_line(text: str) -> str:
    """A docstring without the line breaks of its source; paragraphs stay apart."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))
