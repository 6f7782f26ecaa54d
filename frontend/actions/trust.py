"""Which provider modules may run: built-in ones, and those an operator has entered by digest.

`manifests_dir/trusted_modules.yaml` holds `digests: {"sha256:<hex>": note}`. Guarantees that a module in doubt is not
`digest_ok`. The template process computes the hash of a module's bytes.
"""

import os
import re
from pathlib import Path

import msgspec

from frontend.files.problems import FileProblem, Report
from frontend.manifests.fields import Section, TextRule
from frontend.manifests.manifest import BUILT_IN
from frontend.manifests.reading import read_file
from ipc.messages.modules import ModuleVerdict

TRUSTED_FILE = "trusted_modules.yaml"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NOTE = TextRule(r"[^\x00-\x1f\x7f-\x9f]*", "one line of text, at most 500", 500)


class Trusted(msgspec.Struct, frozen=True):
    """The digests that an operator trusts."""

    digests: frozenset[str] = frozenset()

    def verdict(self, reference: str, module: ModuleVerdict | None) -> str:
        """`digest_ok`, `mismatch` or `not_registered` for a manifest's module reference
        (docs/contract.md, "Execute endpoint", codes action_digest_mismatch and action_not_registered)."""
        if module is not None and module.verdict == "mismatch":
            return "mismatch"
        if module is None or module.verdict != "ok" or module.digest is None:
            return "not_registered"
        if reference.startswith(BUILT_IN):
            return "digest_ok"
        if module.digest != reference:
            return "mismatch"
        return "digest_ok" if reference in self.digests else "not_registered"


NOTHING_TRUSTED = Trusted()


def load_trusted(manifests_dir: Path) -> tuple[Trusted, list[FileProblem]]:
    """The trusted digests of a manifests folder; no file means none. With problems, nothing of it may be used."""
    path = manifests_dir / TRUSTED_FILE
    if not os.path.lexists(path):
        return Trusted(), []
    report = Report(str(path))
    tree = read_file(path, report)
    if tree is None:
        return Trusted(), report.problems
    top = Section(tree, (), report)
    digests = top.section("digests")
    names = digests.names() if digests else ()
    for name in names:
        if digests and not _DIGEST.fullmatch(name):
            report.wrong(
                digests.line_of(name), "digests", name, "must be sha256: and 64 lower-case hex digits", "Correct it."
            )
        elif digests:
            digests.text(name, _NOTE, "")
    top.refuse_unknown()
    return (Trusted(), report.problems) if report.problems else (Trusted(frozenset(names)), [])
