"""The colours, for light and dark. One hue: what matters has a shape, a number or a label as well."""

from __future__ import annotations

from dataclasses import dataclass

# Percentages from which on a cell has the next colour.
STEPS = (0, 20, 40, 50, 60, 70, 80, 90, 95)


@dataclass(frozen=True)
class Scheme:
    paper: str
    card: str
    ink: str
    muted: str  # of secondary text
    line: str  # of rules and grids
    accent: str  # of this library's marks
    ramp: tuple[tuple[str, str], ...]  # the colour and the ink on it, for each of STEPS


def _ramp(fills: str, dark_ink: str, light_ink: str, first_of_other: int, dark_first: bool
          ) -> tuple[tuple[str, str], ...]:
    inks = (dark_ink, light_ink) if dark_first else (light_ink, dark_ink)
    return tuple((fill, inks[i >= first_of_other]) for i, fill in enumerate(fills.split()))


LIGHT = Scheme(
    paper="#ffffff", card="#ffffff", ink="#1b1f24", muted="#57606a", line="#d8dee4", accent="#1a5a9c",
    ramp=_ramp("#f3f6fa #e0eaf4 #cbdcee #b0cbe5 #8fb5da #6c9ccc #3f74b0 #235796 #0e3a6e",
               "#10202f", "#ffffff", 6, dark_first=True))
DARK = Scheme(
    paper="#0d1117", card="#12171e", ink="#e6edf3", muted="#9aa4af", line="#30363d", accent="#7fb2ea",
    ramp=_ramp("#161d26 #1b2a3b #213850 #294867 #335b83 #406fa0 #6b9acb #98bfe4 #d3e5f6",
               "#0b1825", "#f0f5fa", 6, dark_first=False))


def step_of(percent: float) -> int:
    return sum(percent >= step for step in STEPS) - 1


def _luminance(colour: str) -> float:
    def linear(part: int) -> float:
        value = part / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i:i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines, from 1 to 21."""
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)
