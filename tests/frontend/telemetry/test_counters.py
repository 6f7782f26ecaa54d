"""Counts and timings: cheap to add to, bounded, and always fit to be shown."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from frontend.telemetry import counters
from frontend.telemetry.counters import MAX_LABEL, Counts, Levels, Timings, numbers
from frontend.telemetry.families import OTHER, Family

CALLS = Family("test_calls_total", "counter", "Calls.", ("who", "what"))
ALONE = Family("test_alone_total", "counter", "Alone.")
OPEN = Family("test_open", "gauge", "Open.", ("where",))
SECONDS = Family("test_wait_seconds", "histogram", "Waits.", ("who",), (0.1, 1.0, 5.0))


def text_of(*shown: Metric) -> str:
    class Snapshot:
        def collect(self) -> list[Metric]:
            return list(shown)

    registry = CollectorRegistry()
    registry.register(Snapshot())
    text: str = generate_latest(registry).decode()  # type: ignore[no-untyped-call]
    return text


def read(*shown: Metric) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by its name and labels, as another program reads them."""
    samples = {}
    for family in text_string_to_metric_families(text_of(*shown)):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples, "a series comes once"
            samples[key] = sample.value
    return samples


def test_a_series_begins_with_its_first_count_and_those_known_before_with_none() -> None:
    counts = Counts(CALLS, [("a", "b")])
    counts.add("c", "d")
    counts.add("c", "d")
    assert read(counts.shown()) == {
        ("test_calls_total", (("what", "b"), ("who", "a"))): 0,
        ("test_calls_total", (("what", "d"), ("who", "c"))): 2,
    }
    assert (counts.value("c", "d"), counts.value("x", "y")) == (2, 0)
    alone = Counts(ALONE)
    assert read(alone.shown()) == {("test_alone_total", ()): 0}
    alone.add()
    assert read(alone.shown()) == {("test_alone_total", ()): 1}


def test_a_level_goes_up_and_down() -> None:
    level = Levels(OPEN)
    for _ in range(3):
        level.add("here")
    level.less("here")
    assert read(level.shown()) == {("test_open", (("where", "here"),)): 2}


def test_a_time_counts_in_every_bucket_that_holds_it() -> None:
    timings = Timings(SECONDS)
    for seconds in (0.0, 0.1, 0.100001, 1.0, 4.9, 5.1, 70.0):
        timings.observe(seconds, "me")
    samples = read(timings.shown())
    buckets = {dict(labels)["le"]: value for (name, labels), value in samples.items() if name.endswith("_bucket")}
    assert buckets == {"0.1": 2, "1.0": 4, "5.0": 5, "+Inf": 7}
    assert samples["test_wait_seconds_count", (("who", "me"),)] == 7
    assert round(samples["test_wait_seconds_sum", (("who", "me"),)], 6) == 81.200001
    assert timings.value("me") == 7


def test_a_family_that_knows_nothing_is_shown_and_says_nothing() -> None:
    text = text_of(numbers(OPEN, {}), Counts(CALLS).shown(), Timings(SECONDS).shown())
    assert [line for line in text.splitlines() if not line.startswith("#")] == []
    for family in ("test_open gauge", "test_calls counter", "test_wait_seconds histogram"):
        assert f"# TYPE {family}\n" in text
    assert "# UNIT test_wait_seconds seconds\n" in text


def test_what_is_no_longer_there_is_forgotten() -> None:
    counts, timings = Counts(CALLS), Timings(SECONDS)
    for who in ("kept", "gone"):
        counts.add(who, "x")
        timings.observe(1, who)
    for counter in (counts, timings):
        counter.keep(lambda who: who == "kept")
    assert (counts.value("kept", "x"), counts.value("gone", "x")) == (1, 0)
    assert (timings.value("kept"), timings.value("gone")) == (1, 0)
    timings.observe(1, "gone")
    assert timings.value("gone") == 1


def test_beyond_the_bound_what_is_new_is_other() -> None:
    counts, timings = Counts(CALLS), Timings(SECONDS)
    for number in range(counters.MAX_SERIES + 10):
        counts.add(str(number), "x")
        timings.observe(1, str(number))
    counts.add("0", "x")
    assert (counts.value("0", "x"), counts.value(OTHER, OTHER)) == (2, 10)
    assert (timings.value("0"), timings.value(OTHER)) == (1, 10)


TEXTS = st.text(st.characters(), max_size=40) | st.text('"\\\n\r\t{}=,# \u2028\u0085\ud800', max_size=10)


@given(rows=st.lists(st.tuples(TEXTS, TEXTS), max_size=6), help_text=TEXTS)
def test_no_label_and_no_help_breaks_the_format_or_is_lost(rows: list[tuple[str, str]], help_text: str) -> None:
    help_text = help_text.encode("utf-8", "replace").decode()  # a help text is ours and part of a source file
    counts = Counts(CALLS._replace(help=help_text))
    timings = Timings(SECONDS._replace(help=help_text))
    for who, what in rows:
        counts.add(who, what)
        timings.observe(0.5, who)
    shown = counts.shown(), timings.shown()
    text = text_of(*shown)
    assert text.endswith("# EOF\n")
    assert all(line.isprintable() for line in text.split("\n") if not line.startswith("#"))
    samples = read(*shown)
    assert sum(value for (name, _), value in samples.items() if name == "test_calls_total") == len(rows)
    assert sum(value for (name, _), value in samples.items() if name == "test_wait_seconds_count") == len(rows)


@given(label=TEXTS | st.text(min_size=MAX_LABEL - 2, max_size=2 * MAX_LABEL))
def test_a_label_is_printable_and_short_and_stays_itself_where_it_was(label: str) -> None:
    cleaned = counters.clean(label)
    assert cleaned
    assert cleaned.isprintable()
    assert len(cleaned) <= MAX_LABEL
    assert counters.clean(cleaned) == cleaned
    if label and label.isprintable() and len(label) <= MAX_LABEL:
        assert cleaned == label
