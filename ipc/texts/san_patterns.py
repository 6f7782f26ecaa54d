"""Names that a certificate gives its holder (subject alternative names, RFC 5280), and patterns of them.

Guarantees that `*` is one whole segment of a URI's path or one whole label of a DNS name, never a part of one, none or
several, and that a name in another spelling (case, escapes, a trailing dot) matches nothing.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

URI: Final = "uri"
DNS: Final = "dns"
EMAIL: Final = "email"
ANY: Final = "*"
MAX_SAN: Final = 512
"""Characters of such a name: it stands in leases and in evidence."""
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_HEAD: Final = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9][a-z0-9._-]*", re.ASCII)
_SEGMENT: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]+", re.ASCII)
_LOCAL: Final = re.compile(r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*", re.ASCII)


class SanPattern(msgspec.Struct, frozen=True):
    """A name or a pattern, in its parts: scheme with host and path segments; labels; or the whole address."""

    kind: str
    text: str
    parts: tuple[str, ...]

    @property
    def wildcards(self) -> int:
        """The number of parts that are `*`."""
        return self.parts.count(ANY)

    @property
    def spelled(self) -> str:
        """The text as principals hold it: `spiffe:corp:agent:a` for the URI `spiffe://corp/agent/a`, else as it is.

        No two names are spelled alike: no part holds a colon, so that a spelling with colons is of one URI alone.
        """
        return self.text.replace("://", ":").replace("/", ":") if self.kind == URI else self.text

    def covers(self, other: "SanPattern") -> bool:
        """True if this pattern matches each name that the other one matches, or is."""
        return self._fits(other, lambda mine, its: mine in (ANY, its))

    def is_ambiguous_with(self, other: "SanPattern") -> bool:
        """True if some name matches both, and neither pattern is the more special."""
        meets = self._fits(other, lambda mine, its: ANY in (mine, its) or mine == its)
        return meets and not self.covers(other) and not other.covers(self)

    def part_of(self, name: "SanPattern") -> str:
        """The part of a matching name that the first `*` stands for."""
        return name.parts[self.parts.index(ANY)]

    def _fits(self, other: "SanPattern", fits: Callable[[str, str], bool]) -> bool:
        return (
            self.kind == other.kind
            and len(self.parts) == len(other.parts)
            and all(fits(mine, its) for mine, its in zip(self.parts, other.parts, strict=True))
        )


def parse_pattern(text: str) -> SanPattern | None:
    """The pattern that this text is, its kind told by its form; None for any other text."""
    kind = URI if "://" in text else EMAIL if "@" in text else DNS
    return _parse(kind, text, is_pattern=True)


def parse_san(kind: str, text: str) -> SanPattern | None:
    """The name that a certificate has in this form; None where no pattern could match it."""
    return _parse(kind, text, is_pattern=False)


def most_special(patterns: Iterable[SanPattern], name: SanPattern) -> SanPattern | None:
    """The pattern with the fewest `*` that matches the name: a single one, as no two are ambiguous."""
    return min((one for one in patterns if one.covers(name)), key=lambda one: one.wildcards, default=None)


def _parse(kind: str, text: str, *, is_pattern: bool) -> SanPattern | None:
    if len(text) > MAX_SAN:
        return None
    if kind == EMAIL:
        local, _, host = text.partition("@")
        is_address = _LOCAL.fullmatch(local) and all(map(_LABEL.fullmatch, host.split(".")))
        return SanPattern(EMAIL, text, (text,)) if is_address else None
    if kind == DNS:
        parts = tuple(text.split("."))
        # A pattern without a last label of its own would match names of every owner.
        form, rest, literal = _LABEL, parts[:-1], parts[-1:]
    else:
        scheme, slashes, path = text.partition("://")
        host, *segments = path.split("/")
        parts = (scheme + slashes + host, *segments)
        form, rest, literal = _SEGMENT, parts[1:], ()
        if not _HEAD.fullmatch(parts[0]):
            return None
    is_well_formed = all(map(form.fullmatch, literal)) and all(
        (is_pattern and part == ANY) or form.fullmatch(part) for part in rest
    )
    return SanPattern(kind, text, parts) if is_well_formed else None
