"""Whether a pattern can be matched in exponentially many ways: then a backtracking engine can be made to run for ever.

The pattern becomes an automaton with a state for each character that it matches (Glushkov's), every edge counted as
often as there are ways to take it. It is exponential exactly when some loop can be gone round in two ways over one and
the same text: when an edge of a loop is there twice, or two paths that part inside a loop meet again. (Weber and Seidl,
"On the degree of ambiguity of finite automata", 1991: criterion EDA.) A bounded repetition of something that varies in
length is judged as an unbounded one: its ways multiply too. Work is bounded; what is too tangled to be judged within
the bound is refused. Never runs a pattern.
"""

from collections.abc import Iterator

from frontend.schemas.characters import Ranges, meet
from frontend.schemas.pattern import CharacterStep, Choice, Part, PatternRefused, Repetition, Sequence

MAX_WORK = 300_000
"""Edges made, and pairs of edges looked at, for one pattern: a fraction of a second."""

_MANY = 2
"""Counts end here: two ways are as bad as more."""
_MEND = "Let each text be matched in one way only: ^[a-z]+(-[a-z]+)*$ instead of ^([a-z]+-?)+$."

Counts = dict[int, int]


class _Automaton:
    """States are numbers; `follow[p][q]` counts the ways from p to q."""

    def __init__(self) -> None:
        self.steps: list[CharacterStep] = []
        self.follow: list[Counts] = []
        self._left = MAX_WORK

    def work(self, amount: int) -> None:
        """Count some work. Raises PatternRefused when it is too much."""
        self._left -= amount
        if self._left < 0:
            raise PatternRefused("is too tangled to be judged", "Split it, or use maxLength.", 1)

    def build(self, part: Part) -> tuple[Counts, Counts, int]:
        """(states it may begin with, states it may end with, ways to match nothing)."""
        match part:
            case CharacterStep():
                self.steps.append(part)
                self.follow.append({})
                return {len(self.steps) - 1: 1}, {len(self.steps) - 1: 1}, 0
            case Sequence(items):
                joined: tuple[Counts, Counts, int] = {}, {}, 1
                for item in items:
                    joined = self._joined(joined, self.build(item))
                return joined
            case Choice(options):
                first: Counts = {}
                last: Counts = {}
                nothing = 0
                for begins, ends, empty in map(self.build, options):
                    _add(first, begins, 1)
                    _add(last, ends, 1)
                    nothing = min(nothing + empty, _MANY)
                return first, last, nothing
            case Repetition():
                return self._repeated(part)

    def _joined(self, one: tuple[Counts, Counts, int], other: tuple[Counts, Counts, int]) -> tuple[Counts, Counts, int]:
        self._connect(one[1], other[0])
        _add(one[0], other[0], one[2])
        last = dict(other[1])
        _add(last, one[1], other[2])
        return one[0], last, min(one[2] * other[2], _MANY)

    def _connect(self, ends: Counts, begins: Counts) -> None:
        self.work(len(ends) * len(begins))
        for state, ways in ends.items():
            _add(self.follow[state], begins, ways)

    def _repeated(self, part: Repetition) -> tuple[Counts, Counts, int]:
        """Copies in a row. Those beyond `low` may be left out from the end, which keeps one way for each length."""
        joined: tuple[Counts, Counts, int] = {}, {}, 1
        ends: Counts = {}
        is_endless = part.high is None or (part.high > 1 and _varies(part.item))
        copies = max(part.low, 1) if is_endless or part.high is None else part.high
        for number in range(1, copies + 1):
            item = self.build(part.item)
            if item[2] and part.high != 1:
                what = "repeats what may be empty"
                raise PatternRefused(what, "Repeat what holds a character: (a|b)* instead of (a|b?)*.", _place(part))
            if is_endless and number == copies:
                self._connect(item[1], item[0])
            joined = self._joined(joined, item)
            if number >= part.low:
                _add(ends, item[1], 1)
        return joined[0], ends, 0 if part.low else 1


def _varies(part: Part) -> bool:
    """Whether something in there is repeated a number of times that is not fixed, options (`?`) aside."""
    match part:
        case CharacterStep():
            return False
        case Sequence(items) | Choice(items):
            return any(map(_varies, items))
        case Repetition(item, low, high):
            return (high != 1 and high != low) or _varies(item)


def _place(part: Part) -> int:
    """Where the first character of a part stands, from 1."""
    while not isinstance(part, CharacterStep):
        match part:
            case Repetition():
                part = part.item
            case Sequence(items) | Choice(items):
                if not items:
                    break
                part = items[0]
    return part.position + 1 if isinstance(part, CharacterStep) else 1


def _add(counts: Counts, more: Counts, factor: int) -> None:
    if factor:
        for state, ways in more.items():
            counts[state] = min(counts.get(state, 0) + ways * factor, _MANY)


def refuse_exponential(part: Part) -> None:
    """Raises PatternRefused, with the place of the character where two ways meet."""
    automaton = _Automaton()
    automaton.build(part)
    for loop in _loops(automaton.follow):
        for state in loop:
            doubled = [at for at, ways in automaton.follow[state].items() if ways > 1 and at in loop]
            if doubled:
                _refuse(automaton.steps[doubled[0]])
        _refuse_meeting(automaton, loop)


def _refuse_meeting(automaton: _Automaton, loop: frozenset[int]) -> None:
    """Follow every pair of paths that part inside the loop and read the same text."""
    sets: list[Ranges] = [step.characters for step in automaton.steps]
    seen: set[tuple[int, int]] = set()
    waiting = [(state, state) for state in loop]
    while waiting:
        one, other = waiting.pop()
        automaton.work(1 + len(automaton.follow[one]) * len(automaton.follow[other]))
        for left_next in automaton.follow[one]:
            if left_next not in loop:
                continue
            for right_next in automaton.follow[other]:
                if right_next not in loop or (one == other and left_next >= right_next):
                    continue
                if not meet(sets[left_next], sets[right_next]):
                    continue
                if left_next == right_next:
                    _refuse(automaton.steps[left_next])
                pair = (min(left_next, right_next), max(left_next, right_next))
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)


def _refuse(step: CharacterStep) -> None:
    what = "can be matched in exponentially many ways"
    raise PatternRefused(what, _MEND, step.position + 1)


def _loops(follow: list[Counts]) -> Iterator[frozenset[int]]:
    """Strongly connected components with an edge inside (Tarjan's algorithm, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for start in range(len(follow)):
        if start in index:
            continue
        work = [(start, iter(follow[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            state, edges = work[-1]
            for following in edges:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    on_stack.add(following)
                    work.append((following, iter(follow[following])))
                    break
                if following in on_stack:
                    low[state] = min(low[state], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == index[state]:
                    members: set[int] = set()
                    while state not in members:
                        members.add(stack.pop())
                    on_stack -= members
                    if len(members) > 1 or state in follow[state]:
                        yield frozenset(members)
