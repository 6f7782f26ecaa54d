"""Learned rules: what one is, the form it must have, and the file that holds them all (docs/learned.md).

A rule adds one domain or one path pattern to what an action's manifest allows. Guarantees that a file is read whole or
refused whole: a rule that would not be accepted today does not count because it lies in a file. Does no I/O.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from frontend.actions.targets import Learned
from frontend.clock import parse_iso
from frontend.manifests.domains import InvalidDomain, normal_rule
from ipc.evidence import events
from ipc.texts.encoding import decode_object
from ipc.texts.foreign_texts import MAX_REASON, clean_reason
from ipc.texts.paths import InvalidPath, check_pattern

VERSION: Final = 1
MAX_PER_ACTION: Final = 128
"""Rules of one kind for one action: they travel with every plan and are looked through at every call."""
MAX_RULE_CHARACTERS: Final = MAX_REASON
"""So that the audit event of a rule holds it whole."""
BY_APPROVAL: Final = "approval"
BY_HAND: Final = "cli"

_ACTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_PLAIN = re.compile(r"[^*?/]")


class InvalidRule(ValueError):
    """No rule that can be learned; the message says why and never holds the text."""


class LearnedRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One learned rule. `text` is a domain, `*.` and a domain, or a path pattern, in normal form."""

    action_id: str
    text: str
    source: str
    """approval or cli."""
    added_at: str
    """ISO 8601 UTC."""
    added_by: str
    """The operator's name."""
    given: str | None = None
    """A path as the operator gave it, where that was absolute."""


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All learned rules, as they lie in the file."""

    version: int = VERSION
    domains: tuple[LearnedRule, ...] = ()
    paths: tuple[LearnedRule, ...] = ()


class LearnedKind(msgspec.Struct, frozen=True):
    """Domains or paths: everything in which the two differ. `noun` names the error codes."""

    noun: str
    plural: str
    normal: Callable[[str], str]
    added: str
    removed: str
    cleared: str

    def of(self, rules: Rules) -> tuple[LearnedRule, ...]:
        """The rules of this kind."""
        chosen: tuple[LearnedRule, ...] = getattr(rules, self.plural)
        return chosen

    def put(self, rules: Rules, those: tuple[LearnedRule, ...]) -> Rules:
        """The same rules with these of this kind."""
        return msgspec.structs.replace(rules, **{self.plural: those})


def normal_domain_rule(text: str) -> str:
    """Return a domain rule in normal form (docs/decisions/approvals.md, "Learned domains and paths").

    Raises InvalidRule.
    """
    try:
        return normal_rule(text)
    except InvalidDomain as error:
        raise InvalidRule(str(error)) from None


def normal_path_rule(text: str) -> str:
    """A path pattern as it is: nothing is normalised (ipc/texts/paths.py). Raises InvalidRule."""
    if len(text) > MAX_RULE_CHARACTERS:
        raise InvalidRule(f"is longer than {MAX_RULE_CHARACTERS} characters")
    try:
        check_pattern(text)
    except InvalidPath as error:
        raise InvalidRule(f"is no path pattern ({error.rule.replace('_', ' ')})") from None
    # SECURITY: an operator reads it in lists and evidence, where another text than this one must not show.
    if clean_reason(text) != text:
        raise InvalidRule("holds a character that does not show")
    if not _PLAIN.search(text):
        raise InvalidRule("is made of nothing but wildcards")
    return text


def below_root(text: str, root: str | None) -> str:
    """A path that lies below the action's root, relative to that; any other text as it is."""
    start = None if root is None else root.rstrip("/") + "/"
    return text.removeprefix(start) if start is not None and len(text) > len(start) else text


DOMAINS: Final = LearnedKind(
    "domain", "domains", normal_domain_rule, events.DOMAIN_ADDED, events.DOMAIN_REMOVED, events.DOMAIN_CLEARED
)
PATHS: Final = LearnedKind(
    "path", "paths", normal_path_rule, events.PATH_ADDED, events.PATH_REMOVED, events.PATH_CLEARED
)
KINDS: Final = (DOMAINS, PATHS)


def encode_rules(rules: Rules) -> bytes:
    """The file's content, laid out for people too."""
    return msgspec.json.format(msgspec.json.encode(rules), indent=1) + b"\n"


def decode_rules(content: bytes) -> Rules:
    """The rules in a file's content. Raises InvalidRule, with a sentence that names the place, for anything else."""
    try:
        rules = msgspec.convert(decode_object(content), Rules)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidRule(f"is no file of learned rules: {error}") from None
    if rules.version != VERSION:
        raise InvalidRule(f"is of version {rules.version}, known is {VERSION}")
    for kind in KINDS:
        _check_all(kind, kind.of(rules))
    return rules


def count_of(rules: Rules) -> int:
    """How many there are."""
    return len(rules.domains) + len(rules.paths)


def by_action(rules: Rules) -> dict[str, Learned]:
    """Action id -> the rules that it has learned, in the form for planning."""
    texts: dict[str, tuple[list[str], list[str]]] = {}
    for rule in rules.domains:
        texts.setdefault(rule.action_id, ([], []))[0].append(rule.text)
    for rule in rules.paths:
        texts.setdefault(rule.action_id, ([], []))[1].append(rule.text)
    return {action_id: Learned(tuple(domains), tuple(paths)) for action_id, (domains, paths) in texts.items()}


def _check_all(kind: LearnedKind, rules: tuple[LearnedRule, ...]) -> None:
    """Raises InvalidRule unless each of them could be learned today, once, and none for an action too many."""
    seen: set[tuple[str, str]] = set()
    counts: Counter[str] = Counter()
    for index, rule in enumerate(rules):
        try:
            _check(kind, rule)
        except InvalidRule as error:
            raise InvalidRule(f"{kind.plural}[{index}] {error}") from None
        seen.add((rule.action_id, rule.text))
        counts[rule.action_id] += 1
        if len(seen) <= index:
            raise InvalidRule(f"{kind.plural}[{index}] stands there twice")
        if counts[rule.action_id] > MAX_PER_ACTION:
            raise InvalidRule(f"{kind.plural}[{index}] is one more than the {MAX_PER_ACTION} that an action may have")


def _check(kind: LearnedKind, rule: LearnedRule) -> None:
    if not _ACTION.fullmatch(rule.action_id):
        raise InvalidRule("has no action id")
    if rule.source not in (BY_APPROVAL, BY_HAND):
        raise InvalidRule("has an unknown source")
    try:
        parse_iso(rule.added_at)
    except ValueError:
        raise InvalidRule("has no time") from None
    if kind.normal(rule.text) != rule.text:
        raise InvalidRule("is not in its normal form")
    if rule.given is not None and (kind.noun != "path" or not rule.given.endswith(f"/{rule.text}")):
        raise InvalidRule("was given in another form than it has")
