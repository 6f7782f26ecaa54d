"""`[[identity.certificates]]` in the configuration: kinds of its values, the settings of one name, and what must hold
between them."""

import re
from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from typing import Any, Final

from ipc.configuration.certificates import CertificateSettings
from ipc.texts.san_patterns import MAX_SAN, SanPattern, parse_pattern
from supervisor.settings.kind import PathContext, Wrong, kind
from supervisor.settings.sections.section import ArraySection, Found

MAX_CERTIFICATES: Final = 256
REQUIRED: Final = {
    "san": 'Name what the certificates have, like "spiffe://corp/agent/*".',
    "principal": "Name who their holders act as.",
}
"""Settings that every row has, each with what to do where it is missing."""
_TEXT: Final = "[A-Za-z0-9][A-Za-z0-9._:@-]"
_FORM: Final = re.compile(rf"{_TEXT}{{0,255}}|(?:{_TEXT}{{0,127}})?\{{(?:san|\*)\}}")
_PRINCIPAL: Final = re.compile(rf"{_TEXT}*")


@kind(type="string", minLength=1, maxLength=MAX_SAN)
def san(value: object, _: PathContext) -> str:
    """A name that certificates have, or a pattern of such names."""
    if not isinstance(value, str) or parse_pattern(value) is None:
        mend = 'Use one like "spiffe://corp/agent/*", "*.agents.example" or "bob@corp.example".'
        raise Wrong("must be a URI, a DNS name or an e-mail address, with * only as one whole segment or label", mend)
    return value


@kind(type="string", pattern=f"^(?:{_FORM.pattern})$")
def certificate_principal(value: object, _: PathContext) -> str:
    """A principal, or text before one part in braces."""
    if not isinstance(value, str) or not _FORM.fullmatch(value):
        mend = 'Use a form like "corp:{san}" or "agent:{*}".'
        raise Wrong("must be a principal, or letters, digits and . _ : @ -, if any, and then {san} or {*}", mend)
    return value


def required(_: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Settings that this table must have, each with what to do where it is missing."""
    yield from (((setting,), mend) for setting, mend in REQUIRED.items())


def certificate_settings(row: Mapping[str, Any]) -> CertificateSettings:
    """One checked table -> the settings of a name; for an invalid table, the readable part."""
    return CertificateSettings(**{"san": "", "principal": "", **row})


def check_certificates(rows: Mapping[int, Mapping[str, Any]], found: Found) -> None:
    """Find names that two rows match without one of them being the more special, and forms by which two names become
    the same principal, or none."""
    if len(rows) > MAX_CERTIFICATES:
        found((), f"{len(rows)} certificates, and {MAX_CERTIFICATES} are the most", "")
        rows = dict(islice(rows.items(), MAX_CERTIFICATES))  # which are compared with each other
    patterns = {index: parse_pattern(row["san"]) for index, row in rows.items() if "san" in row}
    for index, pattern in patterns.items():
        if pattern is not None:
            _check_form(index, rows[index].get("principal", ""), pattern, found)
    for (_, mine), (later, its) in combinations(patterns.items(), 2):
        if mine is None or its is None:
            continue
        if mine == its:
            found((later, "san"), f'"{its.text}" is there twice', "Leave one out.")
        elif mine.is_ambiguous_with(its):
            text = f'matches names that "{mine.text}" matches, too, and neither is the more special'
            found((later, "san"), text, "Name one of them more closely.")
    forms = {index: row["principal"] for index, row in rows.items() if "principal" in row}
    for (_, one), (later, other) in combinations(forms.items(), 2):
        # One form of whole names makes another principal of each name, in however many rows it stands.
        if could_make_the_same(one, other) and not (one == other and one.endswith("{san}")):
            text = f'could make the same principals as "{one}" of another row'
            found((later, "principal"), text, 'Begin each with another text, like "corp:{*}".')


def _check_form(index: int, form: str, pattern: SanPattern, found: Found) -> None:
    if form.endswith("{*}") and pattern.wildcards != 1:
        found((index, "principal"), "has {*}, and san has not exactly one *", "Use {san}, or a principal.")
    if form.endswith("{san}") and not _PRINCIPAL.fullmatch(form.replace("{san}", pattern.spelled.replace("*", "x"))):
        text = "makes no principal of such a name: principals have no character but letters, digits and . _ : @ -"
        found((index, "principal"), text, "Use {*}, or a principal.")


def could_make_the_same(one: str, other: str) -> bool:
    """True if both are forms, and two credentials could become the same principal by them."""
    heads = [form.partition("{")[0] for form in (one, other) if form.endswith("}")]
    return len(heads) == 2 and (heads[0].startswith(heads[1]) or heads[1].startswith(heads[0]))


def check_beside_issuers(identity: Mapping[str, Any], found: Found) -> None:
    """Find certificates that no configured user may bring, and forms that could make a principal of a token, too."""
    certificates, issuers = identity.get("certificates", {}), identity.get("issuers", {})
    if certificates and not identity.get("edge_uids"):
        text = "is missing, and identity.certificates come from the edge alone"
        found(("edge_uids",), text, "Name its user.")
    forms = [row.get("principal", "{sub}") for row in issuers.values() if not row.get("principals")]
    for index, row in certificates.items():
        if any(could_make_the_same(form, row.get("principal", "")) for form in forms):
            text = "could make the same principals as a row of identity.issuers"
            found(("certificates", index, "principal"), text, 'Begin each with another text, like "x509:{san}".')


SECTION: Final = ArraySection(required, check_certificates, certificate_settings)
