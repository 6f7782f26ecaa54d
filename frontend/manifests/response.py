"""Sections `response` and `idempotency`: what a result keeps of an answer, and the header that has the intent's id."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from frontend.files.problems import Report
from frontend.manifests.fields import Section, TextRule
from frontend.manifests.manifest import BUILT_IN, Manifest
from frontend.manifests.secret_ways import HEADER_NAME
from frontend.manifests.sections import POINTER
from frontend.manifests.templates import CREDENTIAL_HEADERS
from frontend.manifests.yamltree import Node, Path, dotted
from ipc.network.framing_headers import is_framing_header
from ipc.plan import ResponseRules

MAX_HEADERS, MAX_PICKED = 32, 64
_SECRET_HEADERS = CREDENTIAL_HEADERS | {
    "authentication-info", "proxy-authenticate", "proxy-authentication-info", "set-cookie", "set-cookie2",
    "www-authenticate",
}  # fmt: skip
"""Headers of an answer that hold credentials, or are about them."""
_BODYS_OWN = frozenset({"accept-encoding", "content-encoding", "content-type"})
"""Say how a body is written."""
_Note: TypeAlias = Callable[[Path, str, str], None]
_MEMBER = TextRule(r"[^\x00-\x1f\x7f-\x9f]+", "a name without control characters, at most 128", 128)


def response(top: Section) -> ResponseRules | None:
    """Section `response`."""
    section = top.section("response")
    if section is None:
        return None
    pick = section.section("pick")
    rules = ResponseRules(
        headers=section.texts("headers", HEADER_NAME, most=MAX_HEADERS),
        pick={name: pick.text(name, POINTER) for name in pick.names(_MEMBER)} if pick else {},
    )
    section.refuse_unknown()
    return rules if rules.headers or rules.pick else None


class Idempotency(NamedTuple):
    """Section `idempotency`."""

    header: str | None = None
    keep_output: bool = False


def idempotency(top: Section) -> Idempotency:
    """Section `idempotency`: one of its fields at least."""
    section = top.section("idempotency")
    if section is None:
        return Idempotency()
    keep_output = section.flag("keep_output", False)
    header = section.text("header", HEADER_NAME, "" if keep_output else None) or None
    section.refuse_unknown()
    return Idempotency(header, keep_output)


def check_exchange(manifest: Manifest, tree: Node, report: Report) -> None:
    """Note each problem of the sections `response` and `idempotency`."""

    def note(path: Path, message: str, mend: str) -> None:
        report.add(tree.line_at(path), dotted(path), message, mend)

    if manifest.response is not None:
        if manifest.template is None or manifest.provider_module_digest != f"{BUILT_IN}http":
            message = f"the section response is for {BUILT_IN}http with a template."
            note(("response",), message, "Remove it: a module of your own makes its result itself.")
        _check_response(manifest.response, note)
    if manifest.idempotency_header is not None:
        if manifest.template is None:
            note(("idempotency",), "the section idempotency needs a template.", "Add the template, or remove it.")
        _check_idempotency(manifest, manifest.idempotency_header, note)


def _check_response(rules: ResponseRules, note: _Note) -> None:
    seen: set[str] = set()
    for index, name in enumerate(rules.headers):
        path = ("response", "headers", index)
        if name.lower() in _SECRET_HEADERS:
            note(path, f"the header {name} may hold credentials, which results and evidence never have.", "Remove it.")
        if name.lower() in seen:
            note(path, f"the header {name} stands in the list twice.", "Keep one.")
        seen.add(name.lower())
    if len(rules.pick) > MAX_PICKED:
        note(("response", "pick"), f"response.pick has more than {MAX_PICKED} members.", "Shorten it.")


def _check_idempotency(manifest: Manifest, header: str, note: _Note) -> None:
    path = ("idempotency", "header")
    if header.lower() in CREDENTIAL_HEADERS | _BODYS_OWN or is_framing_header(header):
        note(path, f"the header {header} has a meaning of its own.", "Use another header, such as Idempotency-Key.")
    others = [name for name, _ in manifest.template.headers] if manifest.template else []
    others += [secret.way.header_name for secret in manifest.secrets if secret.way and secret.way.header_name]
    if header.lower() in map(str.lower, others):
        note(path, f"the header {header} has two sources: the template or a secret sets it too.", "Keep one of them.")
