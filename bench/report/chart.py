"""SVG: a drawing, scales, axes, marks. Colours are the style sheet's, by classes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Iterable, Sequence

from markupsafe import Markup, escape


def number(value: float) -> str:
    """At most one decimal, which is finer than a pixel."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass
class Drawing:
    """The parts of an <svg>. Its title and description are what a screen reader says."""

    name: str  # unique on the page
    width: float
    title: str
    description: str
    height: float = 0
    parts: list[str] = field(default_factory=list)

    def add(self, tag: str, text: str = "", tooltip: str = "", **attributes: str | float) -> None:
        written = "".join(
            f' {name.rstrip("_").replace("_", "-")}="'
            f'{number(value) if isinstance(value, (int, float)) else escape(value)}"'
            for name, value in attributes.items())
        inside = (f"<title>{escape(tooltip)}</title>" if tooltip else "") + str(escape(text))
        self.parts.append(f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>")

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)

    def text(self, x: float, y: float, text: str, class_: str = "", **attributes: str | float) -> None:
        self.add("text", text, x=x, y=y, **({"class_": class_} if class_ else {}), **attributes)

    def place(self, other: Drawing, x: float, y: float) -> None:
        """Draws all of another one with its corner there."""
        inside = "".join(other.parts)
        self.parts.append(f'<g transform="translate({number(x)} {number(y)})">{inside}</g>')

    def mark(self, shape: str, x: float, y: float, class_: str, tooltip: str) -> None:
        """A circle, square, triangle or diamond of about the same area."""
        if shape == "circle":
            self.add("circle", tooltip=tooltip, cx=x, cy=y, r=3, class_=class_)
            return
        outline = {"square": ((-2.7, -2.7), (2.7, -2.7), (2.7, 2.7), (-2.7, 2.7)),
                   "triangle": ((0, -4), (3.6, 2.6), (-3.6, 2.6)),
                   "diamond": ((0, -4.6), (4.6, 0), (0, 4.6), (-4.6, 0))}[shape]
        path = "L".join(f"{number(x + dx)} {number(y + dy)}" for dx, dy in outline)
        self.add("path", tooltip=tooltip, d=f"M{path}Z", class_=class_)

    def svg(self, style: str = "") -> Markup:
        """`style` makes it stand alone: a style sheet, and paper below the drawing."""
        size = f'viewBox="0 0 {number(self.width)} {number(self.height)}"'
        if style:
            size += f' width="{number(self.width)}" height="{number(self.height)}"'
        paper = '<rect class="paper" width="100%" height="100%"/>' if style else ""
        label = f"{self.name}-title {self.name}-desc"
        return Markup(
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="{label}">'
            f'<title id="{self.name}-title">{escape(self.title)}</title>'
            f'<desc id="{self.name}-desc">{escape(self.description)}</desc>'
            f'{f"<style>{style}</style>" if style else ""}{paper}{"".join(self.parts)}</svg>')


# ---------------------------------------------------------------- scales

@dataclass(frozen=True)
class Scale:
    """From values to pixels. On a logarithmic one equal ratios are equally far apart."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    logarithmic: bool = True

    def __call__(self, value: float) -> float:
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)


def scale_of_powers(values: Iterable[float], base: int, start: float, end: float) -> Scale:
    """From the power of the base below all values to the one above, with a tick at each."""
    logs = [math.log(value, base) for value in values]
    low = math.floor(min(logs) + 1e-9)
    high = max(math.ceil(max(logs) - 1e-9), low + 1)
    ticks = tuple(float(base) ** power for power in range(low, high + 1))
    return Scale(ticks[0], ticks[-1], start, end, ticks)


_MOST_TICKS = 9


def scale_of_decades(values: Sequence[float], start: float, end: float) -> Scale:
    """From the 1, 2 or 5 times a power of ten below all values to the one above, with ticks at these,
    or, where they are too many, at the powers alone."""
    decades = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    steps = [m * 10.0 ** power for power in decades for m in (1, 2, 5)]
    low = max(step for step in steps if step <= min(values))
    high = min(step for step in steps if step >= max(values) and step > low)
    ticks = tuple(step for step in steps if low <= step <= high)
    if len(ticks) > _MOST_TICKS:
        ticks = tuple(tick for tick in ticks if f"{tick:e}"[0] == "1")
    return Scale(low, high, start, end, ticks)


def short(value: float) -> str:
    """A tick's label: 1/4, 0.5, 16, 4k."""
    if value in (1 / 4, 1 / 16):
        return f"1/{1 / value:g}"
    return f"{value / 1024:g}k" if value % 1024 == 0 else f"{value:g}"


def axes(drawing: Drawing, x: Scale, y: Scale, x_title: str, y_title: str) -> None:
    """A grid with labels to the left and below."""
    for tick in y.ticks:
        drawing.line(x.start, y(tick), x.end, y(tick), "grid")
        drawing.text(x.start - 5, y(tick) + 3.5, short(tick), "tick end")
    for tick in x.ticks:
        drawing.line(x(tick), y.start, x(tick), y.end, "grid")
        drawing.text(x(tick), y.start + 14, short(tick), "tick middle")
    drawing.line(x.start, y.start, x.end, y.start, "axis")
    drawing.text((x.start + x.end) / 2, y.start + 29, x_title, "label middle")
    drawing.text(x.start - 5, y.end - 7, y_title, "label")
