"""The table of settings against the structs that the processes read."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from ipc.configuration.certificates import CertificateSettings
from ipc.configuration.issuers import IssuerSettings, SubjectMapping
from ipc.configuration.networks import ClientCertificate, NetworkSettings
from ipc.configuration.quorum import QuorumRule
from ipc.settings import OperatorSettings, PrincipalMapping, Settings, WebhookSettings, WitnessSettings
from supervisor.settings.kind import PathContext, Wrong
from supervisor.settings.schema import SCHEMA, Leaf, Names, SettingsTable, TableArray, leaf_paths, node_at, spellings

SET_BY_THE_GATEWAY = {
    "dev_mode", "weakened", "version", "walls.missing", "walls.uid", "walls.gid", "workers.compute.workers",
    "workers.http.workers", "workers.fs.workers",
}  # fmt: skip
ONLY_IN_THE_FILE = {"operators.api_key_file"}
TABLES = (
    CertificateSettings, ClientCertificate, IssuerSettings, NetworkSettings, OperatorSettings, PrincipalMapping,
    QuorumRule, SubjectMapping, WebhookSettings, WitnessSettings,
)  # fmt: skip


def struct_leaves(struct: Any, path: tuple[str, ...] = ()) -> set[str]:
    """Dotted names of the fields of a struct, as the configuration file has them."""
    names = set()
    for name, kind in get_type_hints(struct).items():
        inner = next((arg for arg in get_args(kind) if isinstance(arg, type) and issubclass(arg, msgspec.Struct)), None)
        where = (*path, name)
        if where in (("identity", "allow_unmapped"), ("identity", "principals")):
            where = ("identity", "peercred", name)
        if inner in TABLES:
            names |= struct_leaves(inner, where)
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            names |= struct_leaves(kind, where)
        else:
            names.add(".".join(where))
    return names


def schema_leaves(node: Any = SCHEMA, path: tuple[str, ...] = ()) -> set[str]:
    if isinstance(node, SettingsTable):
        return set().union(*(schema_leaves(child, (*path, key)) for key, child in node.fields.items()))
    if isinstance(node, TableArray):
        return schema_leaves(node.row, path)
    if isinstance(node, Names) and isinstance(node.value, SettingsTable):
        return schema_leaves(node.value, path)
    return {".".join(path)}


def test_every_setting_of_the_processes_is_in_the_table_and_the_reverse() -> None:
    assert schema_leaves() - ONLY_IN_THE_FILE == struct_leaves(Settings) - SET_BY_THE_GATEWAY
    assert schema_leaves() >= ONLY_IN_THE_FILE


def defaults(struct: msgspec.Struct, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    pairs = []
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            pairs += defaults(value, (*path, name))
        else:
            pairs.append(((*path, name), value))
    return pairs


DEFAULTS = [
    (path, value)
    for path, value in defaults(Settings(state_dir="/s", public_base_url="http://h"))
    if isinstance(value, int | float | str) and node_at(path) is not None
]


@pytest.mark.parametrize(("path", "value"), DEFAULTS)
def test_every_default_is_a_value_that_the_table_accepts(path: tuple[str, ...], value: Any) -> None:
    node = node_at(path)
    assert isinstance(node, Leaf)
    assert node.kind(value, PathContext(Path("/"), {})) == value


NUMBERS = [path for path, value in DEFAULTS if isinstance(value, int | float) and not isinstance(value, bool)]


@pytest.mark.parametrize("path", NUMBERS)
@pytest.mark.parametrize("value", [-1, -0.5, 10**12, float("nan"), float("inf"), True, "5", None, [], {}])
def test_no_number_is_accepted_out_of_bounds_or_as_something_else(path: tuple[str, ...], value: Any) -> None:
    node = node_at(path)
    assert isinstance(node, Leaf)
    with pytest.raises(Wrong):
        node.kind(value, PathContext(Path("/"), {}))


def test_zero_is_refused_wherever_it_makes_no_sense() -> None:
    accepted = []
    for path in NUMBERS:
        node = node_at(path)
        assert isinstance(node, Leaf)
        try:
            node.kind(0, PathContext(Path("/"), {}))
        except Wrong:
            continue
        accepted.append(path[-1])
    assert set(accepted) == {"keep_days", "min_free_bytes", "min_spare"}


def test_a_key_is_spelt_as_it_stands_in_the_file() -> None:
    spelt = dict(spellings())
    assert spelt["webhooks"] == "[[webhooks]]"
    assert spelt["operators"] == "[[operators]]"
    assert spelt["limits"] == "[limits]"
    assert spelt["max_in_flight"] == "max_in_flight in [limits]"
    assert ("identity", "peercred", "principals") in set(leaf_paths())
