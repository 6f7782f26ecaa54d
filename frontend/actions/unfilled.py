"""Finds what an import left to be filled in by a person. Token servers and upstreams would refuse such a name."""

from collections.abc import Iterable
from pathlib import Path

from frontend.files.problems import FileProblem, Report
from frontend.manifests.imported import FILL_IN
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import read_file
from ipc.configuration.secret_ways import AnySecretWay, AsPassword, AsToken


def unfilled_doubts(manifests: Iterable[Manifest]) -> list[FileProblem]:
    """A problem for each secret whose name of a user or client is not filled in. Its action serves all the same."""
    doubts = []
    for manifest in manifests:
        for index, use in enumerate(manifest.secrets):
            member, name = _named(use.way)
            if not name.startswith(FILL_IN):
                continue
            tree = read_file(Path(manifest.file), Report(manifest.file))
            place: tuple[str | int, ...] = ("secrets", index, "inject", *member)
            field = f"secrets[{index}].inject.{'.'.join(member)}"
            message = f'{field} = "{name}": is left from the import, so every call would be refused.'
            mend = "Write the name that the API knows this gateway by."
            doubts.append(FileProblem(manifest.file, tree.line_at(place) if tree else 0, field, message, mend))
    return doubts


def _named(way: AnySecretWay | None) -> tuple[tuple[str, ...], str]:
    """Where in `inject` a way has the name of a user or client, and that name."""
    match way:
        case AsPassword(username=name):
            return ("basic", "username"), name
        case AsToken(client_id=name):
            return ("oauth2_client_credentials", "client_id"), name
    return (), ""
