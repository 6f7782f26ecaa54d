"""A Service of Kubernetes: one address, behind which each new connection goes to a pod that is ready.

As with the real one, connections that are open stay with their pod, whatever becomes of it.
"""

import itertools
import socket
import threading
from contextlib import suppress

ACCEPT_SECONDS = 0.2
CONNECT_SECONDS = 30.0


class PodService:
    """Forwards until it is closed. `ready` are the ports of pods, which a test changes."""

    def __init__(self) -> None:
        self.ready: set[int] = set()
        self.connections = dict[int, int]()
        """Port of a pod -> how many connections it was given."""
        self._turns = itertools.count()
        self._is_closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._listener.settimeout(ACCEPT_SECONDS)
        self._open = set[socket.socket]()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Cut what is open."""
        self._is_closed.set()
        for one in tuple(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in tuple(self._threads):
            thread.join(60)
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            ports = sorted(self.ready)
            if not ports:
                client.close()
                continue
            port = ports[next(self._turns) % len(ports)]
            try:
                pod = socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS)
            except OSError:
                client.close()
                continue
            pod.settimeout(None)
            client.settimeout(None)
            self.connections[port] = self.connections.get(port, 0) + 1
            self._open |= {client, pod}
            thread = threading.Thread(target=self._serve, args=(client, pod), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket, pod: socket.socket) -> None:
        with client, pod:
            back = threading.Thread(target=self._pass_on, args=(pod, client), daemon=True)
            back.start()
            self._pass_on(client, pod)
            back.join()
        self._open -= {client, pod}

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
