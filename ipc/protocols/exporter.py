"""The channels of the exporter: to the supervisor, to each front, and to the notary."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.delivering import Welcome
from ipc.messages.event_reading import AskedByExporter
from ipc.messages.exporting import AttachEvents, AttachGiver, CallsExported, ExportCalls, ExporterReady, StartExporter
from ipc.messages.notary_frames import Answered

# Messages from the supervisor to the exporter.
SUPERVISOR_TO_EXPORTER: Table = {
    ("new", StartExporter): "started",
    ("started", AttachGiver): "started",
    ("started", AttachEvents): "started",
}

# Messages from the exporter to the supervisor.
EXPORTER_TO_SUPERVISOR: Table = {("starting", ExporterReady): "ready"}

pair(SUPERVISOR_TO_EXPORTER, "new", EXPORTER_TO_SUPERVISOR, "starting")

# Messages from a front to the exporter: one question at a time.
FRONT_TO_EXPORTER: Table = {("open", ExportCalls): "open"}

# Messages from the exporter to a front.
EXPORTER_TO_FRONT: Table = {("open", CallsExported): "open"}

pair(FRONT_TO_EXPORTER, "open", EXPORTER_TO_FRONT, "open")

# Messages from the exporter to the notary.
EXPORTER_TO_NOTARY: Table = {("open", AskedByExporter): "open"}

# Messages from the notary to the exporter.
NOTARY_TO_EXPORTER: Table = {("new", Welcome): "open", ("open", Answered): "open"}

pair(EXPORTER_TO_NOTARY, "open", NOTARY_TO_EXPORTER, "new")
