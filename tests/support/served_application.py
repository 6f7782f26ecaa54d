"""An ASGI application that serves on a port of this machine, in a thread."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from tests.support.supervised import wait_until


@contextmanager
def served_application(app: ASGIApp, listener: socket.socket) -> Iterator[None]:
    """Serve until the block ends."""
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
    thread.start()
    try:
        wait_until(lambda: running.started)
        yield
    finally:
        running.should_exit = True
        thread.join(60)
        listener.close()
