"""The report's drawings, of what was measured."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Iterable, Iterator, Mapping, Sequence

from bench.report.chart import Drawing, Scale, axes, number, scale_of_decades, scale_of_powers
from bench.report.data import PLACES, CodeFigure, CopyFigure, Measured, OpFigure, TileFigure
from bench.report.palette import STEPS, step_of
from bench.results import FORMS
from bench.tile_runs import ARCH
from generator import library
from generator.model import BITS, TYPES, Tile

WIDTH = 360  # of a card, so that a phone shows letters as large as a desktop does
_SHAPE_OF_PLACE = {"L1": "circle", "L2": "square", "mem": "triangle"}
_NAME_OF_PLACE = {"L1": "L1", "L2": "L2", "mem": "memory"}


def levels_of(measured: Measured) -> list[str]:
    """What was measured, lowest first."""
    found = {f.tile.isa for f in measured.tiles}
    return [level for level in library.levels(ARCH) if level in found]


def shape_text(tile: Tile) -> str:
    return f"{tile.m0}×{tile.n0}×{tile.k0}"


# ---------------------------------------------------------------- roofline

@dataclass(frozen=True)
class Frame:
    """What the rooflines of a type have in common, so that they compare at a glance."""

    x: Scale
    y: Scale


def frame_of(measured: Measured, tiles: Sequence[TileFigure], ops: Sequence[OpFigure]) -> Frame:
    every = [*tiles, *ops]
    levels = {(f.tile.type.name, f.tile.isa) for f in tiles}
    peaks = [peak.gops for of in levels if (peak := measured.peak(*of))]
    beyond_ridges = [3 * peak / gbytes for peak in peaks for gbytes in measured.reads.values()]
    x = scale_of_powers([*(f.ops_per_byte for f in every), max(beyond_ridges, default=1)], 4, 40, WIDTH - 10)
    y = scale_of_decades([*(f.gops for f in every), *(1.25 * peak for peak in peaks)], 206, 24)
    return Frame(x, y)


def _roofs(drawing: Drawing, measured: Measured, frame: Frame, peak: float) -> None:
    """Bandwidths, from the left or the floor up to the peak, each with its name at the ridge."""
    x, y = frame.x, frame.y
    for place, gbytes in measured.reads.items():
        left, ridge = max(x.low, y.low / gbytes), min(peak / gbytes, x.high)
        if ridge > left:
            drawing.line(x(left), y(left * gbytes), x(ridge), y(ridge * gbytes), f"roof from-{place}")
            drawing.text(x(ridge), y(ridge * gbytes) - 5, _NAME_OF_PLACE[place], "roof-label middle")
    left = max(x.low, peak / max(measured.reads.values(), default=peak / x.low))
    drawing.line(x(left), y(peak), x.end, y(peak), "roof peak")
    drawing.text(x.end, y(peak) - 5, f"peak {peak:.0f}", "roof-label end")


def roofline(measured: Measured, name: str, type_name: str, level: str, frame: Frame,
             tiles: Iterable[TileFigure], ops: Iterable[OpFigure]) -> Drawing:
    tiles, ops = list(tiles), list(ops)
    peak = measured.peak(type_name, level)
    best = max(tiles, key=lambda f: f.gops, default=None)
    told = f"{len(tiles)} measurements of tiles and {len(ops)} of whole operations."
    if best:
        told += f" The fastest tile is {shape_text(best.tile)} at {best.gops:.1f} Gop/s."
    drawing = Drawing(name, WIDTH, f"Roofline of {type_name} on {level}", told, 244)
    x, y = frame.x, frame.y
    axes(drawing, x, y, "operations per byte read", "Gop/s")
    if peak:
        _roofs(drawing, measured, frame, peak.gops)
    for f in sorted(tiles, key=lambda f: PLACES.index(f.place), reverse=True):
        drawing.mark(_SHAPE_OF_PLACE[f.place], x(f.ops_per_byte), y(f.gops),
                     "tile hand" if f.hand else "tile generated",
                     f"{shape_text(f.tile)}{', rounded once' * f.tile.f32acc}, {_origin(f.hand)}, from "
                     f"{_NAME_OF_PLACE[f.place]}: {f.gops:.1f} Gop/s, {f.percent:.0f} % of "
                     f"{'read bandwidth' if f.place == 'mem' else 'peak'}")
    for op in ops:
        drawing.mark("diamond", x(op.ops_per_byte), y(op.gops), "op",
                     f"{op_title(op)}, whole operation: {op.gops:.1f} Gop/s, {op.percent:.0f} % of peak")
    return drawing


def _origin(hand: bool) -> str:
    return "hand-written" if hand else "generated"


# ---------------------------------------------------------------- heat maps

@dataclass(frozen=True)
class Cell:
    percent: float
    tooltip: str
    marked: bool = False  # hand-written


@dataclass(frozen=True)
class HeatPanel:
    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], Cell]


_CELL, _ROW, _HEADER, _ROW_LABELS, _GAP = 31, 19, 32, 28, 14


def _draw_panel(drawing: Drawing, panel: HeatPanel, left: float, top: float, row_labels: float) -> None:
    first = left + row_labels
    drawing.text(first, top + 11, panel.title, "panel-title")
    for j, column in enumerate(panel.columns):
        drawing.text(first + _CELL * (j + 0.5), top + _HEADER - 6, column, "tick middle")
    for i, row in enumerate(panel.rows):
        y = top + _HEADER + _ROW * i
        drawing.text(first - 5, y + 13, row, "tick end")
        for j, column in enumerate(panel.columns):
            x = first + _CELL * j
            cell = panel.cells.get((row, column))
            if not cell:
                drawing.text(x + _CELL / 2, y + 13, "·", "tick middle")
                continue
            step = step_of(cell.percent)
            drawing.add("rect", tooltip=cell.tooltip, x=x + 0.5, y=y + 0.5, width=_CELL - 1, height=_ROW - 1,
                        class_=f"h{step}")
            drawing.text(x + _CELL / 2, y + 13.5, f"{cell.percent:.0f}", f"t{step} middle")
            if cell.marked:
                corner = f"M{number(x + 0.5)} {number(y + 0.5)}h6l-6 6z"
                drawing.add("path", d=corner, class_=f"corner t{step}")


def heat_map(name: str, title: str, description: str, panels: Sequence[HeatPanel], width: float = WIDTH
             ) -> Drawing:
    """Panels from left to right, in as many lines as they need."""
    drawing = Drawing(name, width, title, description)
    row_labels = max(_ROW_LABELS, *(6.2 * len(row) + 8 for panel in panels for row in panel.rows))
    panel_width = max(row_labels + max(_CELL * len(panel.columns), 6.5 * len(panel.title))
                      for panel in panels)
    x = y = line_height = 0.0
    for panel in panels:
        if x and x + panel_width > width:
            x, y = 0, y + line_height + _GAP
            line_height = 0
        _draw_panel(drawing, panel, x, y, row_labels)
        x += panel_width + _GAP
        line_height = max(line_height, _HEADER + _ROW * len(panel.rows))
    drawing.height = y + line_height + 2
    return drawing


def legend(name: str) -> Drawing:
    """Of the heat maps."""
    drawing = Drawing(name, WIDTH, "Legend of the heat maps",
                      "Darker or, on dark paper, lighter is faster.", 40)
    for i, step in enumerate(STEPS):
        upper = STEPS[i + 1] if i + 1 < len(STEPS) else None
        drawing.add("rect", x=4 + 39 * i, y=2, width=37, height=18, class_=f"h{i}")
        drawing.text(22.5 + 39 * i, 15, f"{step}–{upper}" if upper else f"{step}–", f"t{i} middle")
    drawing.text(4, 35, "percent", "tick")
    return drawing


def tile_panels(tiles: Sequence[TileFigure], in_title: str = "") -> Iterator[HeatPanel]:
    """M0 down, N0 across, a panel for each K0 and way of rounding; panels in L1."""
    tiles = [f for f in tiles if f.place == "L1"]
    rows = [str(m0) for m0 in sorted({f.tile.m0 for f in tiles})]
    columns = [str(n0) for n0 in sorted({f.tile.n0 for f in tiles})]
    by_variant = defaultdict(list)
    for f in tiles:
        by_variant[f.tile.f32acc, f.tile.k0].append(f)
    two_roundings = any(BITS[f.tile.type.out] == 16 for f in tiles)
    for (f32acc, k0), figures in sorted(by_variant.items()):
        rounded = (", rounded once" if f32acc else ", each step") if two_roundings else ""
        yield HeatPanel(f"{in_title}K0 = {k0}{rounded}", rows, columns, {
            (str(f.tile.m0), str(f.tile.n0)): Cell(
                f.percent, f"{f.tile.type.name} {shape_text(f.tile)} {f.tile.isa}, {_origin(f.hand)}: "
                           f"{f.gops:.1f} Gop/s", f.hand) for f in figures})


def overview(measured: Measured) -> Drawing | None:
    """Each type on the best level that was measured for it, with the K0 of its fastest tile."""
    panels = []
    for type_name in TYPES:
        tiles = [f for f in measured.tiles if f.tile.type.name == type_name and f.place == "L1"]
        if not tiles:
            continue
        level = max((f.tile.isa for f in tiles), key=lambda isa: library.levels(ARCH)[isa].rank)
        best = max((f for f in tiles if f.tile.isa == level), key=lambda f: f.gops).tile
        alike = [f for f in tiles if (f.tile.isa, f.tile.k0, f.tile.f32acc) == (level, best.k0, best.f32acc)]
        panel, = tile_panels(alike)
        panels.append(HeatPanel(f"{type_name} K0={best.k0}", panel.rows, panel.columns, panel.cells))
    if not panels:
        return None
    return heat_map("overview", "Speed of the tiles of each type, in percent of peak",
                    "A panel per type, on the best instructions measured: M0 down, N0 across, panels in L1.",
                    panels, 640)


# ---------------------------------------------------------------- whole operations

_SMALL_M = 16  # up to which weights are cold: a model's layer finds them in memory


def op_shape(op: OpFigure) -> str:
    return "×".join(map(str, op.shape))


def op_title(op: OpFigure) -> str:
    return (op_shape(op) + (", cold" if op.cold else "")
            + (f", {op.threads} threads" if op.threads > 1 else ""))


def shown_in_bars(op: OpFigure) -> bool:
    return op.form == "packed" and op.threads == 1 and op.cold == (op.shape[0] <= _SMALL_M)


def _of_limit(op: OpFigure) -> float:
    """Percent of peak, or where weights come from memory of the bound."""
    return op.percent if op.bound_percent is None else op.bound_percent


def op_bars(name: str, type_name: str, ops: Sequence[OpFigure], width: float = WIDTH) -> Drawing:
    """A group per shape: this library's bar, filled, and below it the others', hollow."""
    names, right = 74, 44
    scale = Scale(0, 100, names, width - right, (0, 25, 50, 75, 100), logarithmic=False)
    slowest = min(ops, key=_of_limit)
    drawing = Drawing(name, width, f"Whole operations of {type_name} in percent of peak",
                      f"{len(ops)} shapes; the lowest is {op_title(slowest)} at {_of_limit(slowest):.0f} %.")
    y = 14.0
    groups = []
    for op in ops:
        # The ratios were measured in turn, so that they hold where the speeds themselves are disturbed.
        others = sorted(((peer, _of_limit(op) / f.ratio, f.gops) for peer, f in op.peers.items()),
                        key=lambda bar: -bar[1])
        groups.append((op, [("ukernel", _of_limit(op), op.gops), *others]))
    height = sum(28 + 13 * len(bars) for _, bars in groups)
    for tick in scale.ticks:
        drawing.line(scale(tick), 18, scale(tick), 14 + height, "grid")
        drawing.text(scale(tick), 12, f"{tick} %" if tick == scale.high else str(tick), "tick middle")
    for op, bars in groups:
        of_bound = ", of bound" if op.bound_percent is not None else ""
        drawing.text(0, y + 17, op_title(op) + of_bound, "panel-title")
        y += 21
        for bar, percent, gops in bars:
            own = bar == "ukernel"
            end = scale(min(percent, 100))
            drawing.text(names - 5, y + 9.5, bar, "label end" if own else "tick end")
            drawing.add("rect", tooltip=f"{bar}: {gops:.1f} Gop/s", x=names, y=y + 1.5,
                        width=max(end - names, 0.5), height=9, class_="bar own" if own else "bar other")
            drawing.text(end + 4, y + 9.5, f"{percent:.0f}", "label" if own else "tick")
            y += 13
        y += 7
    drawing.height = y + 4
    return drawing


_PICTURE_SHAPES = ((1, 4096, 4096), (16, 4096, 4096), (128, 4096, 4096), (512, 4096, 4096),
                   (1024, 1024, 1024))
_PICTURE_TYPES = 3


def op_picture(ops: Sequence[OpFigure]) -> Drawing | None:
    """The types that most others have, side by side."""
    by_type = defaultdict(list)
    for op in ops:
        if shown_in_bars(op) and op.shape in _PICTURE_SHAPES:
            by_type[op.type].append(op)
    if not by_type:
        return None
    chosen = sorted(by_type, key=lambda name: -len({peer for op in by_type[name] for peer in op.peers}))
    drawing = Drawing("ops", 0, "Whole operations in percent of peak",
                      f"{FORMS['packed'].capitalize()}, one thread; filled: ukernel, hollow: other libraries.")
    for type_name in chosen[:_PICTURE_TYPES]:
        column = op_bars(type_name, type_name, by_type[type_name], 250)
        drawing.text(drawing.width, 12, type_name, "panel-title")
        drawing.place(column, drawing.width, 16)
        drawing.width += column.width + 20
        drawing.height = max(drawing.height, column.height + 16)
    return drawing


@dataclass(frozen=True)
class Standing:
    """This library against the best other in each cell that differs from others in its shape alone."""

    type: str
    form: str
    cold: bool
    threads: int
    cells: int
    mean: float  # geometric
    worst: float
    worst_shape: str
    worst_peer: str


def standings(ops: Iterable[OpFigure]) -> list[Standing]:
    """Of those whose ratio to the best other is certain, whatever else is not."""
    groups = defaultdict(list)
    for op in sorted(ops, key=lambda op: list(TYPES).index(op.type)):
        if (peer := op.best_peer) and op.peers[peer].is_certain:
            groups[op.type, op.form, op.cold, op.threads].append((op.peers[peer].ratio, op_shape(op), peer))
    found = []
    for (type_name, form, cold, threads), cells in groups.items():
        worst = min(cells)
        found.append(Standing(type_name, form, cold, threads, len(cells),
                              statistics.geometric_mean(ratio for ratio, _, _ in cells), *worst))
    return found


# ---------------------------------------------------------------- pack, unpack

_ORDERS = ("n", "i", "o", "io")


def copy_map(name: str, op: str, size: str, copies: Sequence[CopyFigure]) -> Drawing:
    panels = []
    for width in sorted({c.width for c in copies}, key=lambda w: int(w[1:])):
        of_width = [c for c in copies if c.width == width]
        tiles = sorted({c.tile for c in of_width})
        orders = [order for order in _ORDERS if any(c.order == order for c in of_width)]
        panels.append(HeatPanel(width, [f"{a}×{b}" for a, b in tiles], orders, {
            (f"{c.tile[0]}×{c.tile[1]}", c.order): Cell(
                c.percent, f"{op} {width} {c.tile[0]}×{c.tile[1]} {c.order}, {size}: {c.gbytes:.1f} GB/s")
            for c in of_width}))
    slowest = min(copies, key=lambda c: c.percent)
    return heat_map(name, f"{op} of {size} in percent of memcpy",
                    f"A panel per width; tiles down, orders across. The lowest is {slowest.percent:.0f} %.",
                    panels)


# ---------------------------------------------------------------- code

def code_plot(name: str, level: str, code: Sequence[CodeFigure], every: Sequence[CodeFigure]) -> Drawing:
    """`every` gives the frame, which all levels share."""
    def products(c: CodeFigure) -> int:
        return c.tile.m0 * c.tile.n0 * c.tile.k0

    largest = max(code, key=lambda c: c.bytes)
    drawing = Drawing(name, WIDTH, f"Code size of the tiles of {level}",
                      f"{len(code)} tiles; the largest is {largest.tile.symbol} with {largest.bytes} bytes.",
                      234)
    x = scale_of_powers(map(products, every), 4, 40, WIDTH - 10)
    y = scale_of_powers((c.bytes for c in every), 4, 196, 24)
    axes(drawing, x, y, "products a step, M0·N0·K0", "bytes of code")
    for c in sorted(code, key=lambda c: c.hand):
        drawing.mark("circle", x(products(c)), y(c.bytes), "tile hand" if c.hand else "tile generated",
                     f"{c.tile.type.name} {shape_text(c.tile)}{', rounded once' * c.tile.f32acc}, "
                     f"{_origin(c.hand)}: {c.bytes} bytes")
    return drawing
