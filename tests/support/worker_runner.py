"""A Runner inside the test's own process: real engine, real components, no fork."""

import hashlib
import weakref
from collections.abc import Mapping

from wasmtime import Engine
from wasmtime.component import Component

from ipc.messages.attesting import Permit
from ipc.messages.calling import Result
from ipc.plan import Plan
from tests.support.worker_plans import call_of, word_for
from workers.host.connection import make_tls
from workers.host.network import NetworkContext
from workers.host.resolver import Resolver
from workers.interfaces import ENTRY
from workers.runtime.call import Runner
from workers.runtime.contract import check_contract
from workers.runtime.modules import Module, make_engine
from workers.runtime.ticker import EpochTicker
from workers.sandbox.profiles import PROFILES


class Bench:
    """One engine and its ticker for a whole test session; modules are compiled when they are first asked for."""

    def __init__(self) -> None:
        self.engine: Engine = make_engine()
        self.ticker = EpochTicker(self.engine)
        self.ticker.start()
        self.modules: dict[str, Module] = {}
        self._tls = make_tls()

    def add(self, data: bytes) -> str:
        """Compile a component; returns its digest."""
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        if digest not in self.modules:
            component = Component(self.engine, data)
            interfaces = check_contract(self.engine, component)
            entry = component.get_export_index(ENTRY)
            assert entry is not None
            self.modules[digest] = Module(digest, component, entry, interfaces)
        return digest

    def runner(self, profile: str = "compute", files_dir: str = "") -> Runner:
        """A fresh Runner of a profile."""
        outside = None
        if profile == "http":
            outside = NetworkContext(Resolver(), self._tls)
            outside.resolver.start()
        runner = Runner(self.engine, self.modules, PROFILES[profile], self.ticker, outside, files_dir)
        if outside is not None:
            weakref.finalize(runner, outside.kept.close)
        return runner

    def run(self, plan: Plan, secrets: Mapping[str, str] | None = None, word: Permit | None = None) -> Result:
        """Run a plan as a worker of its own profile would, on the word for it unless another is given."""
        files_dir = plan.files.root if plan.files else ""
        return self.runner(plan.profile, files_dir).run(call_of(plan), word or word_for(plan), secrets or {})
