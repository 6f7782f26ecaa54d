"""Real sentinels that watch a real master, each a `redis-server --sentinel` in a folder of the test."""

import subprocess
from pathlib import Path
from typing import Any

import redis

from bench.servers import redis_program
from tests.support.gateway import wait_for
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer

NAME = "main"
DOWN_MS = 2000
"""A master that says nothing for so long is followed by a replica."""


class Sentinels:
    """The number of sentinels; two of them have to agree."""

    def __init__(self, folder: Path, master: RedisServer, number: int = 3) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self.ports = [free_port() for _ in range(number)]
        for port in self.ports:
            home = folder / str(port)
            home.mkdir(parents=True)
            (home / "sentinel.conf").write_text(
                f"port {port}\nbind 127.0.0.1\ndir {home}\nsentinel monitor {NAME} 127.0.0.1 {master.port} 2\n"
                f"sentinel down-after-milliseconds {NAME} {DOWN_MS}\nsentinel failover-timeout {NAME} 5000\n"
            )
            command = [redis_program(), str(home / "sentinel.conf"), "--sentinel", "--logfile", str(home / "log")]
            self._processes.append(subprocess.Popen(command))
        wait_for(lambda: all(self._knows(port, number) for port in self.ports), "the sentinels")

    def url(self, *servers: RedisServer) -> str:
        """The settings of a gateway that uses these sentinels."""
        places = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"redis+sentinel://{places}/{NAME}?ports={','.join(str(one.port) for one in servers)}"

    def masters(self) -> set[int]:
        """The ports that the running sentinels name as the master's; they may differ while a failover goes on."""
        running = [port for port, one in zip(self.ports, self._processes, strict=True) if one.poll() is None]
        return {int(self._ask(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)[1]) for port in running}

    def fail_over(self) -> None:
        """Make the replica the master now, even if the master lives."""
        wait_for(self._begins_failover, "a replica that can be the master")

    def kill(self, at: int) -> None:
        """One of them."""
        self._processes[at].kill()
        self._processes[at].wait(120)

    def close(self) -> None:
        """The end."""
        for at in range(len(self._processes)):
            self.kill(at)

    def _knows(self, port: int, number: int) -> bool:
        try:
            (told,) = self._ask(port, "SENTINEL", "MASTERS")
            return int(told["num-other-sentinels"]) == number - 1 and int(told["num-slaves"]) >= 1
        except (redis.RedisError, ValueError):
            return False

    def _begins_failover(self) -> bool:
        try:
            self._ask(self.ports[0], "SENTINEL", "FAILOVER", NAME)
        except redis.ResponseError as error:
            if "NOGOODSLAVE" not in str(error):
                raise
            return False  # it knows of the replica, and has not heard from it yet
        return True

    def _ask(self, port: int, *command: str) -> Any:
        with redis.Redis(port=port, decode_responses=True) as client:
            return client.execute_command(*command)
