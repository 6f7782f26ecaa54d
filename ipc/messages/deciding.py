"""Front and policy process: candidates and questions."""

from ipc.messages.message import Message
from ipc.messages.pinging import Ping, Pong


class LoadPolicy(Message, frozen=True):
    """Compile these sources beside the active policy. `data` is the JSON text of data.json."""

    load_id: str
    modules: dict[str, str]
    data: str


class UsePolicy(Message, frozen=True):
    """Make the compiled `load_id` the active policy."""

    load_id: str


class Ask(Message, frozen=True):
    """One question: evaluate `data.gateway.decision` over `input`."""

    question_id: int
    input: dict[str, object]
    trace_id: str | None = None
    """The trace id of the request, for the log."""


class PolicyCompiled(Message, frozen=True):
    """`error` None: ready to be used."""

    load_id: str
    error: str | None
    reads: tuple[str, ...] | None = None
    """Fields of the input that decisions depend on, if they depend on nothing else that changes; None if unknown."""
    reads_unknown: str | None = None
    """Why `reads` is None, in a sentence."""


class Verdict(Message, frozen=True):
    """`document` is the JSON text of the decision; None with `error` when the engine failed or it is undefined."""

    question_id: int
    document: str | None
    error: str | None = None


FrontToPolicy = LoadPolicy | UsePolicy | Ask | Ping
PolicyToFront = PolicyCompiled | Verdict | Pong
