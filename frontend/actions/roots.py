"""Checks the roots of fs actions on the disk: no link may lead a root out of the folder for files of actions.

Looks and never touches. A worker follows no link there either (workers/host/folders.py): this says it before a call
fails.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from frontend.files.problems import FileProblem, Report, printable, shown
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import read_file


def root_problems(manifests: Iterable[Manifest], files_folder: str) -> list[FileProblem]:
    """Problems of manifests whose root is reached over a link below `files_folder`, at their `fs.root`."""
    problems = []
    for manifest in manifests:
        if manifest.files is None:
            continue
        root = manifest.files.root_in(files_folder)
        inside = os.path.relpath(root, files_folder)
        leads_to = os.path.realpath(root)
        if leads_to != os.path.normpath(os.path.join(os.path.realpath(files_folder), inside)):
            tree = read_file(Path(manifest.file), Report(manifest.file))
            message = f"fs.root = {shown(manifest.files.root)}: a link on the way leads to {printable(leads_to)}."
            mend = f"Put a folder in place of the link: {printable(root)}."
            problems.append(
                FileProblem(manifest.file, tree.line_at(("fs", "root")) if tree else 0, "fs.root", message, mend)
            )
    return problems
