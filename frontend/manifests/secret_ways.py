"""The field `inject` of a secret: one of the ways of ipc/configuration/secret_ways.py, as a manifest says it."""

import re
from typing import Final

from frontend.manifests.domains import InvalidDomain, normal_domain
from frontend.manifests.fields import Section, TextRule
from ipc.configuration.secret_ways import AnySecretWay, AsHeader, AsParameter, AsPassword, AsToken

HEADER_NAME: Final = TextRule(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "a header name", 128)
WAYS: Final = tuple(str(way.__struct_config__.tag) for way in (AsHeader, AsParameter, AsPassword, AsToken))
"""Members of `inject`, of which there is one."""
_FORMAT = TextRule(
    r"(?:(?!\{value\})[!-~ ])*\{value\}(?:(?!\{value\})[!-~ ])*", "printable ASCII with {value} in it once", 256
)
_PARAMETER = TextRule(r"[A-Za-z0-9._~-]+", "the name of a query parameter, of letters, digits, `.`, `_`, `~`, `-`", 128)
_USERNAME = TextRule(r"[!-9;-~](?:[ -9;-~]*[!-9;-~])?", "printable ASCII without a colon, at most 256", 256)
_CLIENT_ID = TextRule(r"[!-~](?:[ -~]*[!-~])?", "printable ASCII, at most 256", 256)
_SCOPE = TextRule(r"[!#-\[\]-~]+", "a scope of printable ASCII without spaces, quotes and backslashes", 256)
_AUDIENCE = TextRule(r"[!-~]+", "printable ASCII without spaces, at most 1024", 1024)
_TOKEN_URL = TextRule(
    r"https?://[A-Za-z0-9.-]{1,253}(?::[1-9][0-9]{0,4})?/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*",
    "an https:// address with a path, such as https://login.example.com/oauth2/token", 2048,
)  # fmt: skip
_HOST = re.compile(r"https?://([^/:]+)")


def way_of(inject: Section) -> AnySecretWay | None:
    """The way that the section names; None beside a problem that is noted."""
    ways = [way for way in (_header(inject), _parameter(inject), _password(inject), _token(inject)) if way is not None]
    inject.require_any(WAYS, f"a header name; or another of {', '.join(WAYS)}")
    inject.refuse_unknown()
    names = [way.member for way in ways]
    if "header" not in names and inject.has("format"):
        inject.report.add(
            inject.line_of("format"), inject.field("format"), "inject.format is for inject.header alone.", "Remove it."
        )
    if len(ways) > 1:
        message = f"inject has {' and '.join(names)}, and a secret has one way."
        inject.report.add(inject.line_of(names[1]), inject.field(names[1]), message, "Keep one.")
    return ways[0] if ways else None


def host_of(token_url: str) -> str:
    """The name of the server that gives tokens, in lower case."""
    found = _HOST.match(token_url)
    return found[1].lower() if found else ""


def _header(inject: Section) -> AsHeader | None:
    name, form = inject.text("header", HEADER_NAME, ""), inject.text("format", _FORMAT, "{value}")
    return AsHeader(name, form) if inject.has("header") else None


def _parameter(inject: Section) -> AsParameter | None:
    name = inject.text("query", _PARAMETER, "")
    return AsParameter(name) if inject.has("query") else None


def _password(inject: Section) -> AsPassword | None:
    section = inject.section("basic")
    if section is None:
        return None
    way = AsPassword(section.text("username", _USERNAME))
    section.refuse_unknown()
    return way


def _token(inject: Section) -> AsToken | None:
    section = inject.section("oauth2_client_credentials")
    if section is None:
        return None
    way = AsToken(
        token_url=section.text("token_url", _TOKEN_URL),
        client_id=section.text("client_id", _CLIENT_ID),
        scopes=section.texts("scopes", _SCOPE, most=64),
        audience=section.text("audience", _AUDIENCE, "") or None,
    )
    section.refuse_unknown()
    _check_host(section, way.token_url)
    return way


def _check_host(section: Section, token_url: str) -> None:
    host = host_of(token_url)
    if not host:
        return
    try:
        normal_domain(host)
    except InvalidDomain as error:
        section.report.add(
            section.line_of("token_url"), section.field("token_url"), f"the host {host} {error}.",
            "Write a name such as login.example.com.",
        )  # fmt: skip
