"""Which process the end of a channel between exporter and notary is about."""

import os
from types import SimpleNamespace
from typing import Any, cast

from ipc.messages.event_reading import AttachEventReader
from ipc.messages.exporting import ExporterReady
from ipc.settings import Settings
from supervisor.children.children import Child, Children
from supervisor.keepers.exporters import ExporterKeeper
from supervisor.keepers.notaries import NotaryKeeper
from supervisor.programs import Programs
from supervisor.state import SupervisorState


def test_the_channel_of_an_exporter_that_is_gone_ends_no_successor() -> None:
    settings = Settings(state_dir="/nowhere/s", public_base_url="http://h")
    attached: list[str] = []

    def tell(message: AttachEventReader, descriptors: tuple[int, ...]) -> None:
        attached.append(message.exporter_id)
        post(message, descriptors)

    def post(_: object, descriptors: tuple[int, ...]) -> None:
        for one in descriptors:
            os.close(one)

    notary = cast(NotaryKeeper, SimpleNamespace(pid=1, tell=tell))
    keeper = ExporterKeeper(SupervisorState(settings, Programs(), Children({})), notary, list)
    keeper._control = cast(Any, SimpleNamespace(post=post))
    first, second = Child("exporter", None), Child("exporter", None)
    keeper._child = first
    keeper._hear(ExporterReady())
    assert keeper.child_of(attached[0]) is first
    keeper._child, keeper._is_ready = second, False  # the first was killed, and the notary says so a little later
    assert keeper.child_of(attached[0]) is None
    keeper._hear(ExporterReady())
    assert keeper.child_of(attached[0]) is None
    assert keeper.child_of(attached[1]) is second
