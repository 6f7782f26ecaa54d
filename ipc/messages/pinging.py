"""A process that says nothing by itself, and the one that watches it: is its loop alive?"""

from ipc.messages.message import Message


class Ping(Message, frozen=True):
    """Answer. Never a second one before the first is answered."""


class Pong(Message, frozen=True):
    """Answers a Ping, in its turn among all other work."""
