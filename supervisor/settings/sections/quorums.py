"""`[[approvals.quorum]]`: which held calls need several approvals, held against the operators that there are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ipc.configuration.quorum import MOST_GROUPS, QuorumRule, is_met, needed
from ipc.configuration.roles import APPROVE_ROLE
from ipc.settings import OperatorSettings

AT = ("approvals", "quorum")
Note = Callable[[tuple[str | int, ...], str, str], None]


def quorum_rules(rows: Mapping[int, dict[str, Any]]) -> list[QuorumRule]:
    """One for each row."""
    return [QuorumRule(**row) for _, row in sorted(rows.items())]


def check_quorums(rows: Mapping[int, dict[str, Any]], operators: Sequence[OperatorSettings], note: Note) -> None:
    """Note every rule that names no call or two, stands twice, or that these operators can never meet."""
    approving = [one for one in operators if APPROVE_ROLE in one.roles]
    named = set[tuple[str, str]]()
    for index, row in sorted(rows.items()):
        path, text = (*AT, index), f"approvals.quorum[{index}]"
        subjects = [(name, row[name]) for name in ("risk_level", "action_id") if name in row]
        if len(subjects) != 1:
            note(path, f"{text}: needs exactly one of risk_level and action_id.", "Name the calls that it is for.")
        elif subjects[0] in named:
            note(path, f'{text}: {subjects[0][0]} = "{subjects[0][1]}" is there twice.', "Leave one out.")
        named.update(subjects)
        _check_operators(row, approving, path, text, note)


def _check_operators(
    row: dict[str, Any], approving: Sequence[OperatorSettings], path: tuple[str | int, ...], text: str, note: Note
) -> None:
    groups: dict[str, int] = row.get("groups", {})
    if not groups and "count" not in row:
        note(path, f"{text}: needs count or groups.", "count = 2 asks for two operators.")
    if len(groups) > MOST_GROUPS:
        note(
            (*path, "groups"), f"{text}.groups: {len(groups)} groups, and {MOST_GROUPS} are the most.", "Ask for fewer."
        )
        return
    quorum = needed(row.get("count", 1), groups)
    if "count" in row and row["count"] < quorum.count:
        mend = f"Use {quorum.count}: an operator counts for one group."
        note((*path, "count"), f"{text}.count = {row['count']}: is below the sum of its groups.", mend)
    is_short = False
    for name, number in groups.items():
        members = sum(name in one.groups for one in approving)
        if members < number:
            is_short = True
            mend = "Name it in groups of [[operators]] with the role approve."
            note(
                (*path, "groups", name), f'{text}.groups: "{name}" has {members} operators, {number} are needed.', mend
            )
    if not is_short and not is_met(quorum, [one.groups for one in approving]):
        mend = "Ask for fewer, or name more in [[operators]]."
        note(path, f"{text}: {quorum.count} approvals, and only {len(approving)} operators could give them.", mend)
