"""Front and notary: operations that prove what the log holds."""

from ipc.messages.operation import Operation


class ReadCheckpoint(Operation, frozen=True):
    """Answers ShownCheckpoint, of everything that was durable when it was asked."""


class Prove(Operation, frozen=True):
    """Answers the Bundle of what is named, or None when there is nothing of that name."""

    event_id: str | None = None
    intent_id: str | None = None
    receipt_id: str | None = None


class ProveConsistency(Operation, frozen=True):
    """Answers Consistency, or None when the log was never of this size."""

    old_size: int
