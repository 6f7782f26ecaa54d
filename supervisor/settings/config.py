"""Configuration: a checked `ipc.settings.Settings`, or every problem at once.

Guarantees that any content of file, environment and flags gives either settings or problems, each with its place, its
fault and its remedy. Whether settings are safe for production is `supervisor/settings/checks/production.py`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec

from ipc.configuration.quotas import Quota
from ipc.effects import PROFILES
from ipc.settings import (
    AUTO,
    ApprovalSettings,
    OperatorSettings,
    PoolSettings,
    Settings,
    WebhookSettings,
    WitnessSettings,
    WorkerSettings,
)
from supervisor.settings import schema
from supervisor.settings.document import Document, apply_environment, read_document
from supervisor.settings.kind import PathContext, Wrong
from supervisor.settings.pool_shares import most_workers
from supervisor.settings.problems import Problem, dotted, short
from supervisor.settings.sections import certificates, issuers, networks, telemetry
from supervisor.settings.sections.operators import CredentialRefused, check_operators, operator_settings
from supervisor.settings.sections.quorums import check_quorums, quorum_rules
from supervisor.settings.sections.section import ArraySection, Found
from supervisor.settings.sections.webhooks import MAX_ENDPOINTS, webhook_settings
from supervisor.settings.sections.witnesses import MAX_WITNESSES, REQUIRED, witness_settings
from supervisor.settings.toml_lines import Path
from supervisor.settings.unknown_keys import UnknownKeys

_NOTHING = object()


class Loaded(msgspec.Struct, frozen=True):
    """Outcome of a load: `settings` is None exactly when there are problems.

    `judged` is what can be said all the same: settings with defaults where a value is `unread`. For looking only, never
    for starting anything; None when the document as a whole could not be read.
    """

    document: Document
    problems: tuple[Problem, ...]
    settings: Settings | None
    judged: Settings | None = None
    unread: frozenset[Path] = frozenset()
    around_unread: frozenset[Path] = frozenset()
    """Every table that a path of `unread` lies in."""
    places: Mapping[Path, str] = msgspec.field(default_factory=dict)
    """Every path of a file, folder or socket that the document names."""

    def is_judged(self, *path: str | int) -> bool:
        """Whether `judged` says what the document says about a path: neither it nor anything around or in it is
        unread, and nothing that must be there is missing."""
        is_in_unread = any(path[:length] in self.unread for length in range(len(path) + 1))
        return not is_in_unread and path not in self.around_unread


def open_document(file: FilePath | None, environ: Mapping[str, str]) -> tuple[Document, PathContext, list[Problem]]:
    """Read the file, if one is given, and put the environment over it. Relative paths start at the file's folder."""
    folder = FilePath.cwd() if file is None else FilePath.cwd() / file.parent
    context = PathContext(folder, environ)
    document, problems = (Document(), []) if file is None else read_document(file)
    problems += apply_environment(document, environ, context)
    return document, context, problems


def check(
    document: Document, context: PathContext, problems: list[Problem], made: Sequence[OperatorSettings] = ()
) -> Loaded:  # fmt: skip
    """Check a document against the schema. `problems` are those found before; a broken file is not checked further.
    `made`: operators beside those of the file."""
    if document.is_broken:
        return Loaded(document, tuple(problems), None)
    reader = _ConfigReader(document, context, list(problems), made)
    values = reader.read(schema.SCHEMA, document.data, ())
    assert isinstance(values, dict)
    judged = reader.settings(values)
    settings = None if reader.problems else judged
    unread = frozenset(reader.unread)
    around = frozenset(path[:length] for path in unread for length in range(len(path)))
    return Loaded(document, tuple(reader.problems), settings, judged, unread, around, reader.places)


class _ConfigReader:
    """Walks the document beside the schema; wrong values are noted as problems and left out of the result."""

    def __init__(
        self, document: Document, context: PathContext, problems: list[Problem], made: Sequence[OperatorSettings]
    ) -> None:  # fmt: skip
        self.document = document
        self.context = context
        self.made = made
        self.problems = problems
        self.unknown = UnknownKeys()
        self.unread: set[Path] = set()
        self.places: dict[Path, str] = {}

    def note(self, path: Path, text: str, mend: str = "") -> None:
        self.problems.append(self.document.problem(path, text, mend))

    def leave_out(self, path: Path, text: str, mend: str = "") -> object:
        self.note(path, text, mend)
        self.unread.add(path)
        return _NOTHING

    def read(self, node: schema.Node, value: object, path: Path) -> object:
        if isinstance(node, schema.Leaf):
            return self.read_leaf(node, value, path)
        if isinstance(node, schema.TableArray):
            return self.read_rows(node, value, path)
        if not isinstance(value, dict):
            # SECURITY: a text in a table's place may be the address, the header or the key that belongs in it.
            shown = "" if isinstance(value, str) else _shown(value)
            return self.leave_out(path, f"{dotted(path)}{shown}: must be a table.", f"Write [{dotted(path)}].")
        if isinstance(node, schema.Names):
            return self.read_names(node, value, path)
        fields = {}
        for key, child in value.items():
            if key not in node.fields:
                self.note((*path, key), *self.unknown.told(key, node, path))
                continue
            checked = self.read(node.fields[key], child, (*path, key))
            if checked is not _NOTHING:
                fields[key] = checked
        return fields

    def read_leaf(self, node: schema.Leaf, value: object, path: Path) -> object:
        try:
            checked: object = node.kind(value, self.context)
            if node.kind.is_place:
                self.places[path] = str(checked)
            return checked
        except Wrong as wrong:
            shown = "" if wrong.is_secret else _shown(value)
            return self.leave_out(path, f"{dotted(path)}{shown}: {wrong.what}.", wrong.mend)

    def read_rows(self, node: schema.TableArray, value: object, path: Path) -> object:
        if not isinstance(value, list):
            return self.leave_out(path, f"{dotted(path)}: must be an array of tables.", f"Write [[{dotted(path)}]].")
        rows = [(index, self.read(node.row, row, (*path, index))) for index, row in enumerate(value)]
        return {index: row for index, row in rows if row is not _NOTHING}

    def read_names(self, node: schema.Names, value: dict[str, object], path: Path) -> object:
        values = {}
        for key, child in value.items():
            try:
                name = node.key(key, self.context)
            except Wrong as wrong:
                if wrong.is_secret:
                    self.leave_out(path, f"a key in [{dotted(path)}] {wrong.what}.", wrong.mend)
                else:
                    self.leave_out((*path, key), f'key "{short(key)}" in [{dotted(path)}] {wrong.what}.', wrong.mend)
                continue
            if name in values:
                self.leave_out((*path, key), f'key "{short(key)}" in [{dotted(path)}] is there twice.')
                continue
            checked = self.read(node.value, child, (*path, key))
            if checked is not _NOTHING:
                values[name] = checked
        return values

    # ------------------------------------------------------------- from values of the file to the struct

    def settings(self, values: dict[str, Any]) -> Settings:
        """Check what spans several settings and build the struct out of what could be read."""
        self.require(("state_dir",), 'Name the folder for state, like "/var/lib/gateway".')
        self.require(("public_base_url",), 'Name the URL that clients use, like "https://gateway.example".')
        operators = self.operators(values.pop("operators", {}))
        webhooks = self.webhooks(values.pop("webhooks", {}))
        evidence = values.pop("evidence", {})
        evidence |= {"witnesses": self.witnesses(evidence.get("witnesses", {}))}
        egress = values.pop("egress", {})
        egress |= {"networks": self.tables(("egress", "networks"), egress.get("networks", {}), networks.SECTION)}
        identity = values.pop("identity", {})
        identity |= identity.pop("peercred", {})
        principals = identity.get("principals", {})
        for uid in principals:
            self.require(("identity", "peercred", "principals", uid, "principal"), "Name who this user acts as.")
        identity["principals"] = {uid: row for uid, row in principals.items() if "principal" in row}
        self.check_quotas(identity["principals"])
        issuers.check_edge(identity, self.found_in(("identity",)))
        certificates.check_beside_issuers(identity, self.found_in(("identity",)))
        issuers.check_addresses(
            identity.get("issuers", {}), egress.get("unsafe_resolve", {}), self.found_in(("identity", "issuers"))
        )
        for name, section in (("issuers", issuers.SECTION), ("certificates", certificates.SECTION)):
            identity[name] = self.tables(("identity", name), identity.get(name, {}), section)
        workers = values.get("workers", {})
        if "http" in workers:
            workers["http"].setdefault("max", WorkerSettings().http.max)
        self.check_pools(workers, values.get("front_processes", 1))
        self.check_parts(values.get("approvals", {}))
        if "age_identity_file" in values.get("secrets", {}):
            self.require(("secrets", "file"), "Name the encrypted file.")
        if "proxy_allowlist_file" in egress:
            self.require(("egress_proxy_url",), "egress.proxy_allowlist_file is written for that proxy.")
        if "proxy_secret" in egress:
            self.require(("egress_proxy_url",), "egress.proxy_secret is shown to that proxy.")
        if "proxy_ca_file" in egress:
            self.require(("egress_proxy_url",), "egress.proxy_ca_file verifies that proxy.")
        for name in ("opa_token_file", "opa_memo", "unsafe_opa_http"):
            if name in values:
                self.require(("opa_url",), f"{name} is for that OPA.")
        if quorum := values.get("approvals", {}).pop("quorum", {}):
            if not self.unread:
                check_quorums(quorum, [*operators, *self.made], self.note)
            values["approvals"]["quorum"] = quorum_rules(quorum)
        self.check_ledger(values.get("ledger", {}))
        telemetry.check_otlp(values.get("telemetry", {}).get("otlp", {}), self.found_in(("telemetry", "otlp")))
        if values.get("approvals", {}).get("require_signature"):
            self.check_keys_of(operators)
        needed = {"state_dir": "", "public_base_url": ""}
        rows = {"identity": identity, "operators": operators, "webhooks": webhooks}
        rows |= {"evidence": evidence, "egress": egress}
        settings = msgspec.convert(needed | values | rows, Settings)
        self.check_sockets(settings)
        return settings

    def check_sockets(self, settings: Settings) -> None:
        """Each listens at a place of its own; metrics at one, since a scraper asks at one."""
        taken: dict[str, Path] = {}
        for path, place in (
            (("listen_uds_path",), settings.listen_uds_path),
            (("listen_admin_uds_path",), settings.listen_admin_uds_path),
            (("metrics", "listen_uds_path"), settings.metrics.listen_uds_path),
            (("listen_http_addr",), settings.listen_http_addr),
            (("metrics", "listen"), settings.metrics.listen),
        ):
            if place is None or path in self.unread:
                continue
            other = taken.setdefault(place, path)
            if other != path and other not in self.unread:
                self.note(path, f"{dotted(path)}: must differ from {dotted(other)}.")
        if settings.metrics.listen is not None and settings.metrics.listen_uds_path is not None:
            text = "metrics.listen: stands beside metrics.listen_uds_path, and there is one socket for metrics."
            self.note(("metrics", "listen"), text, "Leave one of them out.")

    def require(self, path: Path, mend: str) -> None:
        if not self.document.has(path):
            self.leave_out(path, f"{dotted(path)}: is missing.", mend)

    def check_ledger(self, ledger: dict[str, Any]) -> None:
        """Require a shared store for a ledger that several gateways may share."""
        if "url" in ledger:
            self.require(("store", "redis_url"), "A ledger in PostgreSQL needs its store in a Redis.")
            if "path" in ledger:
                self.note(("ledger", "path"), "ledger.path: a ledger is a file or in PostgreSQL.", "Leave one out.")
        for name in ("password_file", "ca_file"):
            if name in ledger:
                self.require(("ledger", "url"), f"ledger.{name} is for that PostgreSQL.")

    def check_quotas(self, principals: dict[str, dict[str, Any]]) -> None:
        """A quota is the principal's: users who act as the same one have the same."""
        first: dict[str, str] = {}
        for uid, row in principals.items():
            other = first.setdefault(row["principal"], uid)
            for name in Quota.__struct_fields__:
                places = {user: ("identity", "peercred", "principals", user, name) for user in (other, uid)}
                if row.get(name) != principals[other].get(name) and not self.unread & set(places.values()):
                    where = places[uid if name in row else other]
                    text = f"{dotted(where)}: users {other} and {uid} act as the same principal with different limits."
                    self.note(where, text, f"Set {name} in both to the same.")

    def check_pools(self, workers: dict[str, Any], fronts: int) -> None:
        """Compare min_spare with the workers that all fronts can have together: each has an equal part, rounded
        down."""
        for profile in PROFILES:
            given = workers.get(profile, {})
            pool = PoolSettings(**given)
            if not given or self.unread & {("workers", profile, "min_spare"), ("workers", profile, "max")}:
                continue
            if pool.max == AUTO:
                continue
            most, name = most_workers(pool.max, fronts), f"workers.{profile}"
            said = f"{name}.min_spare = {pool.min_spare}: must not be above"
            where = ("workers", profile, "min_spare" if "min_spare" in given else "max")
            if pool.min_spare > pool.max:
                self.note(where, f"{said} {name}.max = {pool.max}.")
            elif pool.min_spare > most:
                text = f"{said} {most}: each of {fronts} fronts has {most // fronts} of {name}.max = {pool.max}."
                self.note(where, text, f"Lower it, or use max = {-(-pool.min_spare // fronts) * fronts}.")

    def check_parts(self, given: dict[str, Any]) -> None:
        """Limit the pending approvals of one principal to half of all pending approvals."""
        settings = msgspec.convert({**given, "quorum": ()}, ApprovalSettings)
        for whole in ("max_pending", "max_pending_bytes"):
            part = f"{whole}_per_principal"
            most, own = getattr(settings, whole) // 2, getattr(settings, part)
            name = part if part in given else whole
            if own > most and not self.unread & {("approvals", whole), ("approvals", part)}:
                text = f"approvals.{part} = {own}: must not be above {most}, half of approvals.{whole}."
                self.note(("approvals", name), text, "One principal must not keep all others from waiting.")

    def operators(self, rows: dict[int, dict[str, Any]]) -> list[OperatorSettings]:
        """One for each row, in their order; a row that will not do keeps its place with what could be read of it."""
        made: dict[int, OperatorSettings] = {}
        for index, row in rows.items():
            path: Path = ("operators", index)
            self.require((*path, "name"), "Name the person or system that holds the key.")
            if "name" not in row:
                continue
            try:
                operator = operator_settings(row)
            except CredentialRefused as refused:
                where = (*path, refused.setting) if refused.setting else path
                self.note(where, f'{dotted(where)} of "{row["name"]}" {refused.what}')
                continue
            made[index] = operator
        check_operators(made, self.found_in(("operators",)))
        places = range(max(rows, default=-1) + 1)
        return [made[index] if index in made else _outline(rows.get(index, {})) for index in places]

    def check_keys_of(self, operators: list[OperatorSettings]) -> None:
        for index, operator in enumerate(operators):
            if operator.dpop_jkt is None:
                path: Path = ("operators", index, "dpop_jkt")
                text = f'{dotted(path)} of "{operator.name}": is missing, and approvals.require_signature is true.'
                self.note(path, text, "Name the thumbprint of the key that signs this operator's decisions.")

    def webhooks(self, rows: dict[int, dict[str, Any]]) -> list[WebhookSettings]:
        """One for each row, in their order; a row that will not do keeps its place with what could be read of it."""
        if len(rows) > MAX_ENDPOINTS:
            self.note(("webhooks",), f"webhooks: {len(rows)} endpoints, and {MAX_ENDPOINTS} are the most.")
        names = set[str]()
        for index, row in rows.items():
            path: Path = ("webhooks", index)
            self.require((*path, "name"), "Name the endpoint: logs and metrics call it so.")
            self.require((*path, "url"), 'Name where to deliver, like "https://hooks.example/gateway".')
            if sum(self.document.has((*path, source)) for source in ("secret", "secret_file")) != 1:
                self.note(path, f"{dotted(path)}: needs exactly one of secret_file and secret.")
            if row.get("name") in names:
                self.note((*path, "name"), f'{dotted(path)}.name = "{row["name"]}": is there twice.')
            names.add(row.get("name", ""))
        return [webhook_settings(rows.get(index, {})) for index in range(max(rows, default=-1) + 1)]

    def witnesses(self, rows: dict[int, dict[str, Any]]) -> list[WitnessSettings]:
        """One for each row, in their order; a row that will not do keeps its place with what could be read of it."""
        at: Path = ("evidence", "witnesses")
        if len(rows) > MAX_WITNESSES:
            self.note(at, f"{dotted(at)}: {len(rows)} witnesses, and {MAX_WITNESSES} are the most.")
        seen: dict[str, set[str]] = {"name": set(), "key": set()}
        for index, row in rows.items():
            for setting, mend in REQUIRED.items():
                self.require((*at, index, setting), mend)
            for setting, before in seen.items():
                if setting in row and row[setting] in before:
                    self.note((*at, index, setting), f"{dotted((*at, index, setting))}: is there twice.")
                before.add(row.get(setting, ""))
        return [witness_settings(rows.get(index, {})) for index in range(max(rows, default=-1) + 1)]

    def tables(self, at: Path, rows: dict[int, dict[str, Any]], section: ArraySection) -> list[Any]:
        """One for each row, in their order; a row that will not do keeps its place with what could be read of it."""
        for index, row in rows.items():
            for setting, mend in section.required(row):
                self.require((*at, index, *setting), mend)
        section.check(rows, self.found_in(at))
        return [section.settings_of(rows.get(index, {})) for index in range(max(rows, default=-1) + 1)]

    def found_in(self, at: Path) -> Found:
        """Note a problem of a setting below `at`."""
        return lambda path, text, mend: self.note((*at, *path), f"{dotted((*at, *path))}: {text}.", mend)


def _outline(row: dict[str, Any]) -> OperatorSettings:
    """Return the settings of an operator whose credential can't be used, without the credential."""
    known = {name: row[name] for name in ("dpop_jkt", "groups", "roles", "owner") if name in row}
    return OperatorSettings(name=row.get("name", ""), **known)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f' = "{short(value)}"'
    if isinstance(value, bool):
        return f" = {str(value).lower()}"
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() < 128):
        return f" = {value}"
    return ""
