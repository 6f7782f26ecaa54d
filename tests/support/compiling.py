"""A module compiled as the template has it done: by a child that is thrown away."""

from wasmtime import Engine

from ipc.walls.given import Given
from tests.support.gateway import wait_for
from tests.support.worker_plans import digest_of
from workers.cache import Cache
from workers.compile import start_compilation


def compiled(engine: Engine, cache: Cache, data: bytes) -> str:
    """Have `data` compiled into the cache; returns the digest of the code. Raises NotCompiled."""
    compilation = start_compilation(engine, cache, digest_of(data), data, Given())
    wait_for(compilation.child.has_ended, "a compiler that ends", 300)
    return compilation.finish()


def kept(engine: Engine, cache: Cache, data: bytes) -> None:
    """The same, with the digest noted, so that the code may be mapped."""
    cache.note(digest_of(data), compiled(engine, cache, data))
