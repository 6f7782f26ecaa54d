"""Principals that a form of the configuration makes of a credential's own words."""

import re
from typing import Final

from ipc.settings import IdentitySettings
from ipc.texts.san_patterns import URI, parse_san

_PRINCIPAL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}", re.ASCII)
_OURS: Final = re.compile(r"gateway|(?:operator|uid|dev):.*", re.ASCII)
"""Principals that the gateway itself gives."""
_SPIFFE: Final = "spiffe:"


def spelled(subject: str) -> str | None:
    """A text as principals hold it: `spiffe:corp:agent:a` for the SPIFFE ID `spiffe://corp/agent/a`, else as it is.

    None for a text that begins like a SPIFFE ID but is malformed: no two texts make the same principal.
    """
    if not subject.startswith(_SPIFFE):
        return subject
    name = parse_san(URI, subject)
    return None if name is None else name.spelled


def why_not_formed(principal: str, settings: IdentitySettings) -> str | None:
    """Why no form may make this text a principal, as the end of a sentence; None if one may.

    SECURITY: an issuer can name its subjects as it likes, and must not give one the name of another caller.
    """
    if not _PRINCIPAL.fullmatch(principal) or _OURS.fullmatch(principal):
        return "makes no principal"
    if principal in settings.named_principals:
        return "makes a principal that the configuration gives to others"
    return None
