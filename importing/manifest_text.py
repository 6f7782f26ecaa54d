"""A manifest as YAML for people: fields in the given order, comments before them, and the same values when it is read.

SECURITY: texts come from others. A comment is one line whatever its text is, and every text that the strict reader of
manifests could take for a number or a flag is quoted.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from importing.refusal import LeftOut
from importing.words import one_line
from ipc.texts.visible import has_looks

WIDTH = 116
_COMMENT, _ONE_LINE = 114, 90


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the library's signature
        """Write every value out."""
        return True

    def represent(self, data: Any) -> None:
        """Each field of the manifest begins a line."""
        root = self.represent_data(data)
        if isinstance(root, yaml.MappingNode):
            root.flow_style = False
        self.serialize(root)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        """A short mapping of scalars stands on one line."""
        node = super().represent_mapping(tag, mapping, flow_style)
        length = sum(len(str(part.value)) + 4 for pair in node.value for part in pair)
        node.flow_style = bool(node.flow_style) and length < _ONE_LINE
        return node


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    looks_like_number = text[:1] in "+-.0123456789"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if looks_like_number and text else None)


_Dumper.add_representer(str, _text)


def manifest_text(fields: Mapping[str, Any], comments: Mapping[str, list[str]]) -> str:
    """The whole file. Raises LeftOut."""
    lines: list[str] = []
    for name, value in fields.items():
        lines += (f"# {one_line(comment, _COMMENT)}" for comment in comments.get(name, ()))
        lines.append(_written({name: value}).rstrip("\n"))
    return "\n".join(lines) + "\n"


def _written(value: dict[str, Any]) -> str:
    """YAML, in which letters of other scripts stand as they are and hidden characters are escaped."""
    text = _dumped(value, as_it_is=True)
    has_hidden = not all(has_looks(one) or one == "\n" for one in text)
    return _dumped(value, as_it_is=False) if has_hidden else text


def _dumped(value: dict[str, Any], *, as_it_is: bool) -> str:
    try:
        return yaml.dump(
            value, Dumper=_Dumper, sort_keys=False, allow_unicode=as_it_is, width=WIDTH, default_flow_style=None
        )
    except UnicodeEncodeError:  # half a pair of surrogates
        raise LeftOut("its texts are no Unicode") from None
