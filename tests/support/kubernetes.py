"""contrib/kubernetes as its users have it: the chart by helm, the bases by kustomize.

`python -m tests.support.kubernetes` writes the bases anew, from the chart.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.support.go_programs import go_program
from tests.support.manifests import REPOSITORY

FOLDER = REPOSITORY / "contrib" / "kubernetes"
CHART = FOLDER / "chart"
FORMS = {"sidecar": (), "edge": ("-f", str(CHART / "values-edge.yaml"))}
"""Each form of the chart, and the arguments that give its values."""
OLDEST, NEWEST = "1.30", "1.37"
"""Versions of Kubernetes that the result is held against."""
_HEAD = "# From contrib/kubernetes/chart, by `make kubernetes`. Change the chart, or patch this in a kustomization.\n"
Resource = dict[str, Any]


def rendered(*arguments: str, name: str = "gateway") -> str:
    """The output of helm. Raises CalledProcessError, whose `stderr` says why."""
    command = [go_program("helm"), "template", name, str(CHART), "--kube-version", OLDEST, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def resources(text: str) -> list[Resource]:
    """All that a file or an output has."""
    return [one for one in yaml.safe_load_all(text) if one is not None]


def built(folder: Path) -> list[Resource]:
    """The output of kustomize."""
    command = [go_program("kustomize"), "build", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return resources(done.stdout)


def one_of(found: Iterable[Resource], kind: str, name: str) -> Resource:
    """The one of this kind and name."""
    (only,) = [one for one in found if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return only


def base(form: str) -> str:
    """The text of a form's base."""
    return _HEAD + rendered(*FORMS[form])


def main() -> None:
    """Write the bases."""
    for form in FORMS:
        (FOLDER / form / "gateway.yaml").write_text(base(form))


if __name__ == "__main__":
    main()
