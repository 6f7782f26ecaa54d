"""The configuration before it is checked: the file's values, what overrides them, and where each came from.

Precedence: flag, environment (`GATEWAY__SECTION__KEY`), file, default. Bytes of any kind give a document and
problems, never another exception.
"""

import codecs
import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from supervisor.settings import schema
from supervisor.settings.kind import PathContext, Wrong
from supervisor.settings.problems import Problem, dotted
from supervisor.settings.toml_lines import Path, key_lines

PREFIX = "GATEWAY__"
MAX_FILE_BYTES = 1_048_576
RANK_ENVIRONMENT = 1
RANK_FLAG = 2

_PLACE_IN_MESSAGE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass
class Document:
    """Values as tomllib gives them. `file` is the name people see; "" when no file was given."""

    file: str = ""
    data: dict[str, object] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    labels: dict[Path, tuple[int, str]] = field(default_factory=dict)
    is_broken: bool = False
    """The file as a whole could not be read: nothing more can be said about it."""

    def has(self, path: Path) -> bool:
        """True if there is any value at the path, valid or not."""
        node: object = self.data
        for key in path:
            is_there = key in node if isinstance(node, dict) else isinstance(node, list) and key in range(len(node))
            if not is_there:
                return False
            node = node[key]  # type: ignore[index]
        return True

    def override(self, path: tuple[str, ...], value: object, label: str, rank: int) -> None:
        """Replace the value at a path. If the file has no table there to put it in, the file is at fault."""
        table: object = self.data
        for key in path[:-1]:
            if not isinstance(table, dict):
                return
            table = table.setdefault(key, {})
        if isinstance(table, dict):
            table[path[-1]] = value
            self.lines = {known: line for known, line in self.lines.items() if known[: len(path)] != path}
            self.labels[path] = (rank, label)

    def default(self, path: tuple[str, ...], value: object, label: str) -> None:
        """Put a value where the file, the environment and the flags say nothing."""
        if not self.has(path):
            self.override(path, value, label, 0)

    def is_default(self, path: tuple[str, ...]) -> bool:
        """True if the value at the path was put there by `default`."""
        return path in self.labels and self.labels[path][0] == 0

    def problem(self, path: Path, text: str, mend: str = "") -> Problem:
        """A problem that points at the path, or at the nearest table around it."""
        field = dotted(path)
        for depth in range(len(path), 0, -1):
            if path[:depth] in self.labels:
                rank, label = self.labels[path[:depth]]
                return Problem(label, 0, text, rank, field, mend)
            if path[:depth] in self.lines:
                return Problem(self.file, self.lines[path[:depth]], text, 0, field, mend)
        return Problem(self.file or "configuration", 0, text, 0, field, mend)


def read_document(file: FilePath) -> tuple[Document, list[Problem]]:
    """Read a TOML file. A fault of the file as a whole is reported alone."""
    document = Document(str(file), is_broken=True)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return document, [Problem(document.file, 0, f"cannot be read: {error.strerror}.")]
    if len(raw) > MAX_FILE_BYTES:
        return document, [Problem(document.file, 0, f"is larger than {MAX_FILE_BYTES} bytes.")]
    return parse_document(document.file, raw)


def parse_document(name: str, raw: bytes) -> tuple[Document, list[Problem]]:
    """Parse TOML from bytes."""
    document = Document(name, is_broken=True)
    raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return document, [Problem(name, line, "is not UTF-8. Save the file as UTF-8.")]
    try:
        document.data = tomllib.loads(text)
        document.lines = dict(key_lines(text))
    except RecursionError:
        return document, [Problem(name, 0, "is nested too deeply.")]
    except ValueError as error:
        # TOMLDecodeError has no line attribute before Python 3.14: its message is the only source.
        place = _PLACE_IN_MESSAGE.search(str(error))
        line = int(place[1]) if place and place[1] else text.count("\n") + 1 if place else 0
        what = _PLACE_IN_MESSAGE.sub("", str(error)).splitlines()[0]
        return document, [Problem(name, line, f"is not TOML: {what}.")]
    document.is_broken = False
    return document, []


def apply_environment(document: Document, environ: Mapping[str, str], context: PathContext) -> list[Problem]:
    """Put every `GATEWAY__SECTION__KEY` over the file. A name that no setting has is a problem, as in the file."""
    problems = []
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        path = tuple(variable.removeprefix(PREFIX).lower().split("__"))
        label = f"environment {variable}"
        node = schema.node_at(path)
        if node is None or isinstance(node, schema.SettingsTable):
            known = [PREFIX + "__".join(leaf).upper() for leaf in schema.leaf_paths()]
            close = difflib.get_close_matches(variable, known, n=1)
            mend = f" Did you mean {close[0]}?" if close else ""
            problems.append(Problem(label, 0, f"unknown setting.{mend}", RANK_ENVIRONMENT))
        else:
            document.override(path, _value(environ[variable], node, context), label, RANK_ENVIRONMENT)
    return problems


def _value(text: str, node: schema.Node, context: PathContext) -> object:
    """The text as a TOML value if that fits, else the text itself: paths are not quoted in a shell."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    if set(parsed) != {"value"}:
        return text
    if isinstance(node, schema.Leaf):
        try:
            node.kind(parsed["value"], context)
        except Wrong:
            try:
                node.kind(text, context)
            except Wrong:
                return parsed["value"]
            return text
    return parsed["value"]
