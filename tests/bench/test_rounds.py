"""Rounds are interleaved, and what they say is a median of ratios of the same round."""

from typing import Any

from bench.rounds import median, order, play, processes, ratio


def sample(number: int, subject: str, level: int = 1, **figures: Any) -> dict[str, Any]:
    return {"round": number, "subject": subject, "level": level, **figures}


def test_every_subject_takes_its_turn_in_every_round_and_another_one_begins_each() -> None:
    assert [order(["a", "b", "c"], number) for number in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]


def test_subjects_are_interleaved_at_each_level_of_each_round() -> None:
    played = play({"echo": (1, 4), "bare": (4,), "own": (1, 4)}, (1, 4), 2, lambda name, level, number: {"p50_ms": 1.0})
    assert [(one["round"], one["level"], one["subject"]) for one in played] == [
        (0, 1, "echo"), (0, 1, "own"), (0, 4, "echo"), (0, 4, "bare"), (0, 4, "own"),
        (1, 1, "own"), (1, 1, "echo"), (1, 4, "bare"), (1, 4, "own"), (1, 4, "echo"),
    ]  # fmt: skip


def test_a_ratio_is_the_median_over_rounds_and_not_the_ratio_of_medians() -> None:
    # The machine was slow for both in the second round.
    figures = [(1.0, 3.0), (10.0, 20.0), (2.0, 8.0)]
    samples = [sample(number, "echo", p50_ms=echo) for number, (echo, _) in enumerate(figures)]
    samples += [sample(number, "own", p50_ms=own) for number, (_, own) in enumerate(figures)]
    assert ratio(samples, "own", "echo", 1, "p50_ms") == 3.0
    assert median(samples, "own", 1, "p50_ms") == 8.0


def test_a_round_without_the_other_subject_gives_no_ratio() -> None:
    samples = [sample(0, "own", p50_ms=3.0), sample(0, "echo", level=4, p50_ms=1.0)]
    assert ratio(samples, "own", "echo", 1, "p50_ms") is None
    assert median(samples, "echo", 1, "p50_ms") is None


def test_a_process_that_a_round_did_not_see_used_nothing_in_it() -> None:
    used: list[dict[str, float]] = [{"front": 5.0, "notary": 9.0}, {"front": 7.0}, {"front": 6.0, "notary": 8.0}]
    samples = [sample(number, "own", cpu_us=cpu) for number, cpu in enumerate(used)]
    assert list(processes(samples, "own", 1).items()) == [("notary", 8.0), ("front", 6.0)]
