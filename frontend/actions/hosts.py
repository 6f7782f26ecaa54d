"""Compares the fixed host of each template with the domains that its action may reach.

If the host is not among them, every call of the action waits for a person.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from frontend.actions.targets import NOTHING_LEARNED, Learned
from frontend.files.problems import FileProblem, Report
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import read_file
from frontend.manifests.urls import UrlTemplate
from ipc.network import domains


def host_doubts(manifests: Iterable[Manifest], learned: Mapping[str, Learned]) -> list[FileProblem]:
    """Templates whose host is neither in `egress.allowed_domains` nor learned by their action. They serve all the
    same."""
    doubts = []
    for manifest in manifests:
        host = UrlTemplate(manifest.template.url_template).host if manifest.template else None
        known = learned.get(manifest.action_id, NOTHING_LEARNED).domains
        if host is None or domains.matches(host, manifest.egress.allowed_domains) or domains.matches(host, known):
            continue
        tree = read_file(Path(manifest.file), Report(manifest.file))
        field = "template.url_template"
        message = f"{field}: {host} is not in egress.allowed_domains, so every call would wait for a person."
        line = tree.line_at(field.split(".")) if tree else 0
        doubts.append(FileProblem(manifest.file, line, field, message, "Add it there, or correct the host."))
    return doubts
