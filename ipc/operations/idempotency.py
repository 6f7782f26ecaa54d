"""The operation that reads what is kept of calls for those that repeat them."""

from ipc.operations.operation import FrontOperation


class ReadKeptOutput(FrontOperation[str | None], frozen=True):
    """Read the output of a call, JSON text, if it is still kept. `call_id` as in RepeatedCall.

    SECURITY: an answer that writes is remembered for fronts that ask again. An output must not lie there, so it
    is asked for apart.
    """

    call_id: str
