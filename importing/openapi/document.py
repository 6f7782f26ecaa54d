"""An OpenAPI document as its operations. Reads what an import needs and checks the form of each part that it reads; a
part in another form raises LeftOut, for its operation alone.

A whole document is not validated: published ones break the rules of OpenAPI in places that no manifest depends on.
"""

import re
from functools import cached_property
from typing import Any

import msgspec

from importing.openapi.references import References
from importing.refusal import ImportRefused, LeftOut
from importing.steps import ImportSteps
from importing.words import one_line, snake

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
MAX_OPERATIONS = 5000
_VERSION = re.compile(r"3\.([01])\.[0-9]+\S*")


class ApiOperation(msgspec.Struct, frozen=True):
    """One method of one path. `raw` is its part of the document, `item` that of its path."""

    method: str
    path: str
    raw: dict[str, Any]
    item: dict[str, Any]
    document: "ApiDocument"

    @property
    def key(self) -> str:
        """`POST /refunds`, as the document writes the path."""
        return f"{self.method} {self.path}"

    @property
    def name(self) -> str:
        """A name in snake case: of the operation's id, otherwise of method and path. May be empty."""
        given = self.raw.get("operationId")
        return (snake(given) if isinstance(given, str) else "") or snake(f"{self.method.lower()} {self.path}")

    @property
    def title(self) -> str:
        """The id, or method and path, for people."""
        return one_line(self.raw.get("operationId"), 80) or one_line(self.key, 80)

    @property
    def parameters(self) -> list[Any]:
        """The path's and the operation's own, as they stand there."""
        return [*_list(self.item.get("parameters")), *_list(self.raw.get("parameters"))]

    @property
    def responses(self) -> dict[str, Any]:
        """Answers by status."""
        answers = self.raw.get("responses")
        return answers if isinstance(answers, dict) else {}

    @property
    def servers(self) -> list[Any]:
        """The servers of the operation, its path or the document: the nearest that are given."""
        given = (_list(one.get("servers")) for one in (self.raw, self.item, self.document.root))
        return next(filter(None, given), [])

    @property
    def security(self) -> list[Any]:
        """Alternatives, each a mapping of schemes."""
        given = self.raw.get("security")
        return _list(self.document.root.get("security") if given is None else given)

    @property
    def scheme_names(self) -> list[str]:
        """Every scheme that one of the alternatives names."""
        return sorted({name for one in self.security if isinstance(one, dict) for name in one})


class ApiDocument:
    """One document. `is_3_0`: its schemas are OpenAPI's own dialect, not JSON Schema."""

    def __init__(self, root: dict[str, Any], name: str) -> None:
        """Raises ImportRefused."""
        version = root.get("openapi")
        found = _VERSION.fullmatch(version) if isinstance(version, str) else None
        if found is None:
            raise ImportRefused(f"{name} {_wrong_version(root)}")
        info = root.get("info")
        self.root = root
        self.version = f"3.{found[1]}"
        self.is_3_0 = found[1] == "0"
        self.title = one_line(info.get("title"), 200) if isinstance(info, dict) else ""
        self.title = self.title or one_line(name.rpartition("/")[2], 200)
        self.steps = ImportSteps(name)
        self.references = References(root, self.steps)

    @cached_property
    def schemes(self) -> dict[str, Any]:
        """Security schemes by name."""
        components = self.root.get("components")
        schemes = components.get("securitySchemes") if isinstance(components, dict) else None
        return schemes if isinstance(schemes, dict) else {}

    @cached_property
    def operations(self) -> tuple[ApiOperation, ...]:
        """All operations by path and method. Raises ImportRefused."""
        found = [
            ApiOperation(method.upper(), path, raw, item, self)
            for path, item in self._items[0].items()
            for method in METHODS
            if isinstance(raw := item.get(method), dict)
        ]
        if not found:
            why = "".join(f": {one_line(path, 80)} {reason}" for path, reason in self.unread_paths[:1])
            raise ImportRefused(f"{self.title}: the document has no operations below `paths`{why}.")
        if len(found) > MAX_OPERATIONS:
            raise ImportRefused(f"{self.title}: the document has more than {MAX_OPERATIONS} operations.")
        return tuple(found)

    @cached_property
    def counted_callbacks(self) -> int:
        """Calls in the other direction, of which no manifest can be made."""
        callbacks = sum(len(_mapping(operation.raw.get("callbacks"))) for operation in self.operations)
        return callbacks + len(_mapping(self.root.get("webhooks")))

    @property
    def unread_paths(self) -> list[tuple[str, str]]:
        """Paths whose operations are not known, and why."""
        return self._items[1]

    @cached_property
    def _items(self) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str]]]:
        """Each path's item; and each path that can't be read, with the reason."""
        items, unread = {}, []
        for path, given in sorted(_mapping(self.root.get("paths")).items()):
            if path.startswith("x-"):
                continue
            try:
                items[path] = self.references.followed(given)
            except LeftOut as reason:
                unread.append((path, str(reason)))
        return items, unread


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _wrong_version(root: dict[str, Any]) -> str:
    if "swagger" in root:
        return (
            "is Swagger 2.0. Convert it to OpenAPI 3, with swagger2openapi or the editor of Swagger for example, and "
            "import that."
        )
    said = one_line(str(root.get("openapi", "")), 40)
    if said in ("3.0", "3.1"):
        return f"has `openapi: {said}`, which is no whole version. Write `openapi: {said}.0`."
    return f"is OpenAPI {said}: 3.0 and 3.1 are read." if said else "has no `openapi: 3.0.x` or `3.1.x` at its top."
