"""Kinds of settings of backends that are servers (ipc/backends/servers.py)."""

import re

from ipc.backends.servers import Backend
from supervisor.settings import value_kinds
from supervisor.settings.kind import PathContext, ValueKind, Wrong, kind

_PREFIX = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"


def server_url(backend: Backend) -> ValueKind[str]:
    """The URL of a server. SECURITY: never with a password, which would show in status, logs and a process list."""
    form = backend.form
    assert form is not None, "a server with a kind of its own is not read by this one"

    @kind(type="string", pattern=form.pattern)
    def check(value: object, context: PathContext) -> str:
        given = value_kinds.text(value, context)
        try:
            form.parse(given)
        except ValueError as error:
            raise Wrong(str(error).removesuffix("."), is_secret=True) from None
        return given

    return check


@kind(type="string", pattern=_PREFIX)
def prefix(value: object, context: PathContext) -> str:
    """The first letters of the names of a store's keys."""
    given = value_kinds.text(value, context)
    if not re.fullmatch(_PREFIX, given):
        raise Wrong("must be letters, digits and . _ : -, at most 64", 'Use a form like "gateway".')
    return given
