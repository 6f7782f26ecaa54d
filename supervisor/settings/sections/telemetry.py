"""`[telemetry.otlp]` in the configuration: what must hold between its settings, and on this installation."""

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ipc.process.private_files import PrivateFileError, look_at_private
from supervisor.settings.kind import PathContext, Wrong, kind
from supervisor.settings.sections.networks import has_certificates
from supervisor.settings.sections.section import Found

_PACKAGE = "opentelemetry.proto"


@kind(type="number", exclusiveMinimum=0, maximum=1)
def share(value: object, _: PathContext) -> float:
    """A part of a whole: above 0, at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise Wrong("must be a number above 0, at most 1")
    return float(value)


def check_otlp(otlp: Mapping[str, Any], found: Found) -> None:
    """Find settings without a collector, paths of a single signal, a missing package, and files that can't be used."""
    if not otlp:
        return
    if "endpoint" not in otlp:
        found(("endpoint",), "is missing", 'Name the collector, like "http://127.0.0.1:4318".')
    elif otlp["endpoint"].endswith(("/v1/traces", "/v1/logs")):
        found(("endpoint",), "names the path of one signal", "Leave out /v1/… of the address.")
    elif not _is_installed():
        mend = "pip install '.[otlp]' in a clone of the repository; requirements.lock has it."
        found(("endpoint",), "needs the package opentelemetry-proto, which is not installed", mend)
    for name, text, mend in _of_files(otlp):
        found((name,), text, mend)


def _of_files(otlp: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Look at both files. SECURITY: the headers are not read, since the supervisor holds no secret of a collector."""
    if "ca_file" in otlp and not has_certificates(otlp["ca_file"]):
        text = f"{otlp['ca_file']} can't be read as certificates in PEM"
        yield "ca_file", text, "Name a file of certificates that this user may read."
    if "headers_file" in otlp:
        try:
            look_at_private(Path(otlp["headers_file"]))
        except PrivateFileError as error:
            yield "headers_file", str(error).removesuffix("."), ""


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec(_PACKAGE) is not None
    except ModuleNotFoundError:
        return False
