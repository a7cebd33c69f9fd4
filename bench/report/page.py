"""The report as one HTML file, and the pictures that stand alone."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Iterable, Sequence

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.report import figures
from bench.report.chart import Drawing
from bench.report.data import CodeFigure, Measured, OpFigure, Provenance, TileFigure
from bench.report.figures import Standing
from bench.report.measure import is_of
from bench.report.palette import DARK, LIGHT
from bench.results import FORMS
from bench.tile_runs import ARCH
from generator import coverage, library
from generator.model import ARCHS, TYPES
from generator.tiles import table

_ENVIRONMENT = Environment(loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True,
                           trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def style_of_charts() -> str:
    text = _ENVIRONMENT.get_template("chart.css.j2").render(light=LIGHT, dark=DARK)
    return "".join(line.strip() + "\n" for line in text.splitlines() if line.strip())


# ---------------------------------------------------------------- what a page has

@dataclass(frozen=True)
class Source:
    """What stands below a figure."""

    where: str  # CPU and days
    what: str  # compiler and version
    commands: list[str]


@dataclass(frozen=True)
class Card:
    title: str
    note: str
    drawings: list[Markup]


@dataclass(frozen=True)
class TypeSection:
    name: str
    cards: list[Card]
    source: Source


@dataclass(frozen=True)
class OpSection:
    name: str
    bars: Markup
    ops: list[OpFigure]
    peers: list[str]
    source: Source


@dataclass(frozen=True)
class CoverageTable:
    arch: str
    head: list[str]
    types: list[tuple[str, list[list[str]]]]  # a type, and the rest of its lines


@dataclass(frozen=True)
class CodeLine:
    level: str
    tiles: int
    median: float
    largest: CodeFigure
    total: int


def _unique(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _source(runs: Sequence[Provenance], commands: Sequence[str] = ()) -> Source:
    """`commands` replace those of the runs."""
    days = sorted({run.date[:10] for run in runs})
    where = f"{_unique(run.cpu for run in runs)} · {' to '.join(dict.fromkeys((days[0], days[-1])))}"
    what = f"{_unique(run.compiler for run in runs)} · ukernel {_unique(run.version for run in runs)}"
    return Source(where, what, list(dict.fromkeys(commands or [run.command for run in runs])))


def _runs(measured: Measured, *wanted: str) -> list[Provenance]:
    return [run for name, run in measured.provenance.items() if any(is_of(name, w) for w in wanted)]


def _runs_of(measured: Measured, shown: Iterable[TileFigure | OpFigure]) -> list[Provenance]:
    return [measured.provenance[name] for name in dict.fromkeys(f.source for f in shown)]


def _runs_in_l1(measured: Measured) -> list[Provenance]:
    return _runs_of(measured, (f for f in measured.tiles if f.place == "L1"))


# ---------------------------------------------------------------- sections

def _type_sections(measured: Measured) -> list[TypeSection]:
    found = []
    for type_name in TYPES:
        tiles = [f for f in measured.tiles if f.tile.type.name == type_name]
        if not tiles:
            continue
        ops = [op for op in measured.ops if op.type == type_name and op.threads == 1]
        frame = figures.frame_of(measured, tiles, ops)
        cards = []
        runs = _runs_of(measured, tiles)
        for level in figures.levels_of(measured):
            here = [f for f in tiles if f.tile.isa == level]
            if not here:
                continue
            peak = measured.peak(type_name, level)
            in_l1 = [f for f in here if f.place == "L1"]
            name = f"{type_name}-{level}"
            drawings = [figures.roofline(measured, f"roof-{name}", type_name, level, frame, here,
                                         [op for op in ops if op.level == level]).svg()]
            if in_l1:
                slowest, fastest = (pick(in_l1, key=lambda f: f.percent) for pick in (min, max))
                drawings.append(figures.heat_map(
                    f"heat-{name}", f"Tiles of {type_name} on {level} in percent of peak",
                    f"M0 down, N0 across, panels in L1. From {slowest.percent:.0f} % "
                    f"({figures.shape_text(slowest.tile)}) to {fastest.percent:.0f} % "
                    f"({figures.shape_text(fastest.tile)}).", list(figures.tile_panels(here))).svg())
            note = f"{peak.instruction}, {peak.gops:.0f} Gop/s" if peak else ""
            cards.append(Card(level, note, drawings))
        programs = dict.fromkeys(run.command.split()[0] for run in runs)
        commands = [f"{program} --benchmark_filter={type_name}_" for program in programs]
        if roofs := _runs(measured, "roofs"):
            commands += [roofs[0].command]
        found.append(TypeSection(type_name, cards, _source([*runs, *roofs], commands)))
    return found


def _op_sections(measured: Measured) -> list[OpSection]:
    found = []
    for type_name in TYPES:
        ops = [op for op in measured.ops if op.type == type_name]
        if not ops:
            continue
        shown = [op for op in ops if figures.shown_in_bars(op)] or ops
        peers = list(dict.fromkeys(peer for op in ops for peer in op.peers))
        found.append(OpSection(type_name, figures.op_bars(f"ops-{type_name}", type_name, shown).svg(),
                               ops, peers, _source(_runs_of(measured, ops))))
    return found


def _copy_cards(measured: Measured) -> list[Card]:
    groups = defaultdict(list)
    for copy in measured.copies:
        groups[copy.op, copy.size].append(copy)
    return [Card(op, f"{size}, percent of memcpy",
                 [figures.copy_map(f"copies-{op}-{size}", op, size, copies).svg()])
            for (op, size), copies in sorted(groups.items(), key=lambda group: group[0][0])]


@cache
def _coverage() -> list[CoverageTable]:
    tables = []
    for arch in ARCHS:
        head, *lines = coverage.coverage_lines(arch, table(arch))
        types = [(name, [line[1:] for line in of_type])
                 for name, of_type in groupby(lines, key=lambda line: line[0])]
        tables.append(CoverageTable(arch, head, types))
    return tables


def _code_lines(code: Sequence[CodeFigure]) -> list[CodeLine]:
    found = []
    for level in library.levels(ARCH):
        here = [c for c in code if c.tile.isa == level]
        if here:
            found.append(CodeLine(level, len(here), statistics.median(c.bytes for c in here),
                                  max(here, key=lambda c: c.bytes), sum(c.bytes for c in here)))
    return found


def _code_cards(code: Sequence[CodeFigure]) -> list[Card]:
    return [Card(line.level, f"{line.tiles} tiles", [figures.code_plot(
        f"code-{line.level}", line.level, [c for c in code if c.tile.isa == line.level], code).svg()])
        for line in _code_lines(code)]


def page(measured: Measured) -> str:
    overview = figures.overview(measured)
    runs = list(measured.provenance.values())
    standings: list[Standing] = figures.standings([*measured.ops, *measured.disturbed_ops])

    def source(*wanted: str) -> Source | None:
        found = _runs(measured, *wanted)
        return _source(found) if found else None

    return _ENVIRONMENT.get_template("index.html.j2").render(
        style=Markup(style_of_charts()),
        source=_source(runs) if runs else None, runs=measured.provenance,
        overview=overview and overview.svg(), legend=figures.legend("legend").svg(),
        types=_type_sections(measured), reads=measured.reads,
        ops=_op_sections(measured), disturbed_ops=measured.disturbed_ops, standings=standings,
        forms=FORMS, peers=measured.peers,
        op_title=figures.op_title,
        copies=_copy_cards(measured), copies_source=source("copies"),
        coverage=_coverage(),
        code=_code_lines(measured.code), code_cards=_code_cards(measured.code), code_source=source("code"),
        shape_text=figures.shape_text,
        time=measured.compile_time, time_source=source("time"),
        overview_source=overview and _source(_runs_in_l1(measured)))


# ---------------------------------------------------------------- pictures

def _alone(drawing: Drawing, source: Source) -> str:
    """With a margin, its title, and where its figures come from."""
    margin, head, foot = 16, 34, 40
    whole = replace(drawing, width=drawing.width + 2 * margin, height=drawing.height + head + foot + margin,
                    parts=[])
    whole.text(margin, 26, drawing.title, "picture-title")
    whole.place(drawing, margin, head + 8)
    whole.text(margin, whole.height - 26, source.where, "tick")
    whole.text(margin, whole.height - 12, source.what, "tick")
    return str(whole.svg(style_of_charts())) + "\n"


def pictures(measured: Measured) -> dict[str, str]:
    """By file name, those whose figures there are."""
    found = {}
    if overview := figures.overview(measured):
        found["tiles.svg"] = _alone(overview, _source(_runs_in_l1(measured)))
    if measured.ops and (drawing := figures.op_picture(measured.ops)):
        found["ops.svg"] = _alone(drawing, _source(_runs(measured, "ops")))
    return found
