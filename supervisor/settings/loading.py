"""Settings of a production gateway: from a file and the environment, checked by the rules of production, too."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from supervisor.settings.checks.ceilings import ceiling_problems, ceilings_here
from supervisor.settings.checks.overlaps import overlap_problems
from supervisor.settings.checks.production import broken_rules
from supervisor.settings.config import Loaded, check, open_document


def load_for_production(file: Path, environ: Mapping[str, str]) -> Loaded:
    """Settings from a file, or every problem of it: each setting is judged even where others are wrong."""
    loaded = check(*open_document(file, environ))
    if loaded.judged is None:
        return loaded
    broken = [
        loaded.document.problem(finding.path, finding.text, finding.mend)
        for finding in broken_rules(loaded.judged)
        if loaded.is_judged(*finding.path)
    ]
    broken += [*overlap_problems(loaded), *ceiling_problems(loaded, ceilings_here())]
    return replace(loaded, problems=(*loaded.problems, *broken), settings=None if broken else loaded.settings)
