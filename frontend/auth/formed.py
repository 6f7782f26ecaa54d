"""Principals that a form of the configuration makes of a credential's own words."""

import re
from typing import Final

from ipc.settings import IdentitySettings

_PRINCIPAL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}", re.ASCII)
_OURS: Final = re.compile(r"gateway|(?:operator|uid|dev):.*", re.ASCII)
"""Principals that the gateway itself gives."""


def why_not_formed(principal: str, settings: IdentitySettings) -> str | None:
    """Why no form may make this text a principal, as the end of a sentence; None if one may.

    SECURITY: an issuer can name its subjects as it likes, and must not give one the name of another caller.
    """
    if not _PRINCIPAL.fullmatch(principal) or _OURS.fullmatch(principal):
        return "makes no principal"
    if principal in settings.named_principals:
        return "makes a principal that the configuration gives to others"
    return None
