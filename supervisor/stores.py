"""Kinds of settings of a store that is a Redis."""

import re

from ipc.redis_address import parse_redis_url
from supervisor import kinds
from supervisor.kind import Context, Wrong, kind

_PREFIX = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"


@kind(type="string", pattern=r"^((redis|rediss)(\+sentinel)?|unix)://")
def redis_url(value: object, context: Context) -> str:
    """Where it is. SECURITY: never with a password, which would show in status, logs and a process list."""
    given = kinds.text(value, context)
    try:
        parse_redis_url(given)
    except ValueError as error:
        raise Wrong(str(error).removesuffix("."), is_secret=True) from None
    return given


@kind(type="string", pattern=_PREFIX)
def prefix(value: object, context: Context) -> str:
    """What the names of its keys begin with."""
    given = kinds.text(value, context)
    if not re.fullmatch(_PREFIX, given):
        raise Wrong("must be letters, digits and . _ : -, at most 64", 'Use a form like "gateway".')
    return given
