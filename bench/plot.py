"""A plot of lines over connections, as SVG that reads without colour: each line has its own dashes and its name."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 120, 34, 44
DASHES: Final = ("", "8 4", "2 4", "8 4 2 4", "14 4")
NAME_HEIGHT: Final = 14
"""Pixels that two names at the right need between them."""
Points = Sequence[tuple[int, float]]
"""Connections, and the figure."""


def svg(title: str, lines: Mapping[str, Points], highest: float) -> str:
    """The picture. Connections stand on a logarithmic axis, figures from 0 to `highest` on a linear one."""
    levels = sorted({level for points in lines.values() for level, _ in points})
    widest = math.log2(levels[-1]) or 1.0

    def at(level: int, value: float) -> tuple[float, float]:
        across = (WIDTH - LEFT - RIGHT) * math.log2(level) / widest
        up = (HEIGHT - TOP - BOTTOM) * min(value, highest) / highest
        return round(LEFT + across, 1), round(HEIGHT - BOTTOM - up, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif"',
        f'font-size="12" fill="#333" stroke-width="2"><title>{escape(title)}</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 18, title),
        _text((WIDTH - RIGHT + LEFT) / 2, HEIGHT - 8, "connections", "middle"),
    ]
    for level in levels:
        parts.append(_text(at(level, 0)[0], HEIGHT - BOTTOM + 16, str(level), "middle"))
    for quarter in range(5):
        value = highest * quarter / 4
        y = at(1, value)[1]
        parts.append(f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#ccc" stroke-width="1"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:g}", "end"))
    for points, dashes in zip(lines.values(), DASHES, strict=False):
        path = "L".join(f"{x} {y}" for x, y in (at(*point) for point in points))
        parts.append(f'<path d="M{path}" fill="none" stroke="#246" stroke-dasharray="{dashes}"/>')
    parts += _names({name: at(*points[-1]) for name, points in lines.items()})
    return "\n".join([*parts, "</svg>", ""])


def _names(ends: Mapping[str, tuple[float, float]]) -> list[str]:
    """The name of each line beside its end, moved down where another one stands there."""
    parts, below = [], 0.0
    for name, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
        below = max(below + NAME_HEIGHT, y)
        parts.append(_text(x + 6, round(below + 4, 1), name))
    return parts


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
