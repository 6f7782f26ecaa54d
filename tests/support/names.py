"""A resolver whose answers a test chooses."""

import socket
from typing import Any

import pytest

SERVICE = "service.gateway.test"


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """SERVICE has these addresses, in this order; other names have their own."""
    real = socket.getaddrinfo

    def answers(host: Any, port: Any, *args: Any, **kinds: Any) -> Any:
        names = addresses if host == SERVICE else (host,)
        return [found for name in names for found in real(name, port, *args, **kinds)]

    monkeypatch.setattr(socket, "getaddrinfo", answers)
