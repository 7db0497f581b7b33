"""Charts as SVG, written by hand: bars and lines, light and dark, no library."""

from collections.abc import Iterable
from html import escape
from math import ceil, floor, log10

from bench.report.figures import Bars, Chart, Line, Lines
from bench.report.formatting import number

WIDTH = 720
BAR, GAP, TOP = 22, 10, 46
LABELS, VALUES = 250, 90
LEFT, RIGHT, BOTTOM, HEIGHT = 70, 20, 70, 340
OTHERS = "#8c959f"
COLOURS = ("#2f6fde", "#d9822b", "#3a9d5d", "#8e59c9")
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600; font-size: 15px }
.small { font-size: 12px } .axis { stroke: #8c959f } .grid { stroke: #d0d7de; stroke-dasharray: 2 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #3d444d } }
</style>"""


def draw(chart: Chart) -> str:
    """The chart as an SVG document."""
    return _bars(chart) if isinstance(chart, Bars) else _lines(chart)


def _bars(chart: Bars) -> str:
    most = max((value for _, value in chart.bars), default=0) or 1
    room = WIDTH - LABELS - VALUES
    parts = [_text(4, 20, f"{chart.title} ({chart.unit})", "title")]
    for place, (name, value) in enumerate(chart.bars):
        y = TOP + place * (BAR + GAP)
        colour = COLOURS[0] if place < chart.ours else OTHERS
        length = max(1.0, room * max(0.0, value) / most)
        parts.append(_text(LABELS - 10, y + 16, name, anchor="end"))
        parts.append(f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2" fill="{colour}"/>')
        parts.append(_text(LABELS + length + 8, y + 16, number(value)))
    return _document(chart.title, TOP + len(chart.bars) * (BAR + GAP) + 4, parts)


def _lines(chart: Lines) -> str:
    points = [point for line in chart.lines for point in line.points]
    across, up = ticks(max((x for x, _ in points), default=1)), ticks(max((y for _, y in points), default=1))
    parts = [_text(4, 20, f"{chart.title} ({chart.y})", "title")]
    for value in up:
        y = _y(value, up[-1])
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{value:,.6g}", "small", "end"))
    context = HEIGHT - BOTTOM
    parts += [_text(_x(each, across[-1]), context + 18, f"{each:,.7g}", "small", "middle") for each in across]
    parts.append(f'<line class="axis" x1="{LEFT}" y1="{context}" x2="{WIDTH - RIGHT}" y2="{context}"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, context + 38, chart.x, "small", "middle"))
    parts += _curves(chart.lines, across[-1], up[-1])
    return _document(chart.title, HEIGHT, parts)


def _curves(lines: Iterable[Line], right: float, top: float) -> list[str]:
    """The curves, with a legend below."""
    parts, x = [], float(LEFT)
    for line, colour in zip(lines, COLOURS, strict=False):
        path = " ".join(f"{_x(across, right):.1f},{_y(up, top):.1f}" for across, up in line.points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<rect x="{x:.0f}" y="{HEIGHT - 18}" width="12" height="12" rx="2" fill="{colour}"/>')
        parts.append(_text(x + 18, HEIGHT - 8, line.name, "small"))
        x += 40 + 8 * len(line.name)
    return parts


def ticks(most: float) -> list[float]:
    """Round numbers from zero to at least `most`, about five of them."""
    most = most if most > 0 else 1.0
    power = 10.0 ** floor(log10(most / 4))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= most / 5)
    return [step * i for i in range(ceil(most / step - 1e-9) + 1)]


def _x(value: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / most


def _y(value: float, most: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / most


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(title: str, height: int, parts: list[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, *parts, "</svg>"]) + "\n"
