"""The places and ports that the exporter can reach."""

from pathlib import Path

from exporter.walls import walls
from ipc.configuration.telemetry import OtlpSettings
from ipc.walls.given import LANDLOCK, SECCOMP
from ipc.walls.kinds import KINDS
from ipc.walls.places import outside_places, program_places


def own_places(otlp: OtlpSettings, *guarded: str) -> set[str]:
    common = {place.path for place in (*program_places(), *outside_places())}
    return {place.path for place in walls(otlp, guarded).places} - common


def test_an_exporter_connects_to_the_port_of_its_collector_and_to_name_servers() -> None:
    built = walls(OtlpSettings(endpoint="http://127.0.0.1:4318"), ())
    assert built.scope.ports == (53, 4318)
    assert walls(OtlpSettings(endpoint="https://otlp.example"), ()).scope.ports == (53, 443)
    assert {SECCOMP, LANDLOCK, *built.namespaces} == set(KINDS["exporter"]), "what gateway doctor says"


def test_an_exporter_reads_its_headers_and_no_other_file_of_the_gateway(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.touch()
    otlp = OtlpSettings(endpoint="http://127.0.0.1:4318", headers_file=str(headers))
    looked_up = {"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"}
    assert own_places(otlp) - looked_up == {str(tmp_path)}
    assert own_places(otlp, str(tmp_path)) - looked_up == {str(headers)}
