"""The bench of effects, against its own upstream: what it says is what was waited for."""

from typing import Any

from bench import effects
from bench.generator import generator
from bench.subjects import floor
from bench.targets import PLAIN


def test_the_upstream_answers_after_the_delay_that_its_path_says() -> None:
    with floor("upstream") as upstream, generator() as load:
        figures = load.posts(upstream, "/v1/delay/100", "{}", 2, 20.0, calls=4, warmup=0)
        assert figures["p50_ms"] >= 100
        assert figures["refused"] == 0


def sample(subject: str, level: int, served: float, refused: float) -> dict[str, Any]:
    return {
        "round": 0, "subject": subject, "level": level, "served_per_second": served, "refused": refused,
        "per_second": 100.0, "p99_ms": 300.0, "cpu_us_all": 200.0,
    }  # fmt: skip


def test_calls_that_were_refused_are_not_counted_as_served() -> None:
    waits = [sample(PLAIN, 256, 640.0, 0.25), sample(effects.UPSTREAM, 256, 1280.0, 0.0)]
    results = {
        "delays_ms": [200], "200 ms": waits, "mb_a_waiting_call": 0.4, "polite_p99_ratio": 1.2,
        "other_action_p99_ms": 60.0,
    }  # fmt: skip
    by_name = {one.what: one for one in effects.targets(results)}
    assert by_name["200 ms, 256 at once: calls/s ÷ ideal"].figure == 0.5
    assert by_name["200 ms, 256 at once: share refused"].is_met is False
    assert by_name["http_post at 32, no delay: calls/s ÷ echo"].is_met is None
    assert "missed" in effects.told(results)
    assert '<text x="526.0"' in effects.plot(results)
