"""Each kind of verifier in ipc/verifiers.py has its functions in the workers and its row in docs/manifests.md."""

import re
from pathlib import Path

import pytest

from ipc.effects import IMPORTS
from ipc.verifiers import VERIFIERS, PointerField, SchemaField, VerifierKind
from workers.verifiers.verify import FUNCTIONS

MANIFESTS = (Path(__file__).resolve().parents[2] / "docs" / "manifests.md").read_text()
KINDS = pytest.mark.parametrize(("name", "kind"), VERIFIERS.items(), ids=VERIFIERS)


def row_of(name: str) -> list[str]:
    """The cells of the row of the kind in the table of verifiers."""
    for line in MANIFESTS.split("### `verifier_kind` and")[1].splitlines():
        cells = [cell.strip() for cell in line.split("|")][1:-1]
        if cells and cells[0] == f"`{name}`":
            return cells
    raise AssertionError(f"docs/manifests.md has no row for {name}")


@KINDS
def test_a_kind_that_judges_has_its_functions_in_the_workers(name: str, kind: VerifierKind) -> None:
    assert (name in FUNCTIONS) == (kind.declared is None)
    can_look = name in FUNCTIONS and FUNCTIONS[name].look_again is not None
    assert can_look == (kind.keep is not None) == (kind.cannot_look is None)
    assert kind.needs_import is None or kind.needs_import in IMPORTS


def test_every_function_in_the_workers_is_of_a_declared_kind() -> None:
    assert not FUNCTIONS.keys() - VERIFIERS.keys()


@KINDS
def test_the_page_on_manifests_has_what_a_kind_needs_and_may_be_told(name: str, kind: VerifierKind) -> None:
    _, needs, config, outcome, looks_again = row_of(name)
    assert re.findall(r"import `(\w+)`", needs) == ([] if kind.needs_import is None else [kind.needs_import])
    for field in kind.config:
        assert f"`{field.name}`" in config
        default = "fs" if isinstance(field, PointerField) and field.is_path else getattr(field, "default", "")
        assert default in config
        assert not isinstance(field, SchemaField) or "`io.response_schema`" in config
    assert any(f"`{one}`" in outcome for one in kind.outcomes)
    assert looks_again.split(":")[0] == ("no" if kind.keep is None else "yes")


def test_the_page_on_manifests_lists_the_kinds_in_their_order() -> None:
    assert f"| `{next(iter(VERIFIERS))}` | {', '.join(f'`{name}`' for name in VERIFIERS)} |" in MANIFESTS
