"""`[[identity.issuers]]` in the configuration: kinds of its values, the settings of one issuer, and what must hold
between them."""

import re
from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from typing import Any, Final
from urllib.parse import urlsplit

from ipc.configuration.issuers import MAX_NAME, IssuerSettings, SubjectMapping
from ipc.keys.key_sets import KeySetRefused, fits, read_file
from supervisor.settings import value_kinds
from supervisor.settings.kind import PathContext, Wrong, kind
from supervisor.settings.sections.certificates import could_make_the_same
from supervisor.settings.sections.section import ArraySection, Found

MAX_ISSUERS: Final = 32
REQUIRED: Final = {
    "name": "Name the issuer: logs call it so.",
    "issuer": 'Name it as its tokens do in "iss", like "https://login.example".',
    "audience": 'Name what its tokens for this gateway have in "aud", like "https://gate.example".',
    "algorithms": 'Name how it signs, like ["RS256"].',
}
"""Settings that every issuer has, each with what to do where it is missing."""
_FORM: Final = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._:@-]{0,127})?\{[A-Za-z0-9_.:/-]{1,128}\}")
_ASCII: Final = re.compile(rf"[!-~]{{1,{MAX_NAME}}}")


@kind(type="string", pattern="^[!-~]+$", minLength=1, maxLength=MAX_NAME)
def token_text(value: object, _: PathContext) -> str:
    """An issuer, a subject or an audience: printable ASCII without spaces."""
    if not isinstance(value, str) or not _ASCII.fullmatch(value):
        raise Wrong(f"must be printable ASCII without spaces, at most {MAX_NAME} characters")
    return value


@kind(anyOf=[token_text.form, value_kinds.list_of(token_text).form])
def audience(value: object, context: PathContext) -> tuple[str, ...]:
    """One audience, or an array of them."""
    return value_kinds.list_of(token_text)([value] if isinstance(value, str) else value, context)


@kind(type="string", pattern=f"^{_FORM.pattern}$")
def principal_form(value: object, _: PathContext) -> str:
    """Text before one claim in braces. SECURITY: with two claims, other values could make the same principal."""
    if not isinstance(value, str) or not _FORM.fullmatch(value):
        mend = 'Use a form like "corp:{sub}".'
        raise Wrong("must be letters, digits and . _ : @ -, if any, and then one claim in braces", mend)
    return value


@kind(anyOf=[value_kinds.text.form, {"type": "boolean"}])
def claim_value(value: object, context: PathContext) -> str | bool:
    """The value of a claim: a text, true or false."""
    return value if isinstance(value, bool) else value_kinds.text(value, context)


def required(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Settings that this table must have, each with what to do where it is missing."""
    yield from (((setting,), mend) for setting, mend in REQUIRED.items())
    for subject in row.get("principals", {}):
        yield ("principals", subject, "principal"), "Name who this subject acts as."


def issuer_settings(row: Mapping[str, Any]) -> IssuerSettings:
    """One checked table -> the settings of an issuer; for an invalid table, the readable part."""
    given = {"name": "", "issuer": "", "audience": (), "algorithms": ()} | dict(row)
    subjects = given.pop("principals", {})
    mapped = {subject: SubjectMapping(**one) for subject, one in subjects.items() if "principal" in one}
    return IssuerSettings(**given, principals=mapped)


def check_issuers(rows: Mapping[int, Mapping[str, Any]], found: Found) -> None:
    """Find what no issuer by itself shows: names and issuers that are there twice, and forms by which subjects of two
    issuers could become the same principal. Look at the files of keys, too."""
    if len(rows) > MAX_ISSUERS:
        found((), f"{len(rows)} issuers, and {MAX_ISSUERS} are the most", "")
        rows = dict(islice(rows.items(), MAX_ISSUERS))  # which are compared with each other
    for (_, one), (index, other) in combinations(rows.items(), 2):
        for setting in ("name", "issuer"):
            if setting in one and one[setting] == other.get(setting):
                found((index, setting), f'"{one[setting]}" is there twice', "Put audiences of one issuer in one row.")
        forms = [row.get("principal", "{sub}") for row in (one, other) if not row.get("principals")]
        if len(forms) == 2 and could_make_the_same(*forms):
            text = f'could make the same principals as "{one.get("name", "")}"'
            found((index, "principal"), text, 'Begin each with another text, like "corp:{sub}".')
    for index, row in rows.items():
        if row.get("principals") and "principal" in row:
            found((index, "principal"), "stands beside principals, which name every principal", "Leave one out.")
        for text, mend in _of_keys(row):
            found((index, "jwks_file"), text, mend)


def check_addresses(rows: Mapping[int, Mapping[str, Any]], resolve: Mapping[str, str], found: Found) -> None:
    """Find addresses of keys without TLS; a dev gateway may name servers of this host in `resolve`."""
    for index, row in rows.items():
        parts = urlsplit(row.get("jwks_url", ""))
        if parts.scheme == "http" and parts.hostname not in resolve:
            found((index, "jwks_url"), "is not https, and others on the way could make keys", "Use its https address.")


def _of_keys(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Look at the file of keys, with what a token of this issuer needs of it."""
    file, algorithms = row.get("jwks_file"), row.get("algorithms", ())
    if (file is None) == (row.get("jwks_url") is None):
        text = "is missing" if file is None else "stands beside jwks_url"
        yield text, "Name a file of the issuer's public keys, or in jwks_url their address."
    if file is None:
        return
    try:
        keys = read_file(file)
    except OSError as error:
        yield f"{file} can't be read: {error.strerror}", "Name a JWK set that this user may read."
    except KeySetRefused as error:
        yield f"{file} {error}", "Put the issuer's public keys there, as its jwks_uri serves them."
    else:
        if algorithms and not any(fits(key, algorithm) for key in keys for algorithm in algorithms):
            text = f"{file} has no key for signatures in {' or '.join(algorithms)}"
            yield text, "Name how the issuer signs in algorithms, or another file."


def check_edge(identity: Mapping[str, Any], found: Found) -> None:
    """Find users who would be an edge and an agent at once, and issuers whose tokens no configured user may bring."""
    mapped = identity.get("principals", {})
    for uid in identity.get("edge_uids", ()):
        if str(uid) in mapped:
            found(("edge_uids",), f"user {uid} has a mapping in identity.peercred.principals", "Leave one of them out.")
    if identity.get("issuers") and not identity.get("edge_uids"):
        found(("edge_uids",), "is missing, and tokens of identity.issuers come from the edge alone", "Name its user.")


SECTION: Final = ArraySection(required, check_issuers, issuer_settings)
