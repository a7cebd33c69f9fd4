"""Tables of what bench_ops measured: whole operations against other libraries.

python3 bench/peers.py RESULT.json... [--update FILE [--block NAME]]

RESULT.json are what `bench_ops --benchmark_out=RESULT.json` wrote, in one run or in several of parts of
the cells, on one CPU against the same libraries; of a cell that was measured more than once the most
certain counts. Speeds are relative to the best of the other libraries in each cell, the median of pairs.
A cell is disturbed where the quartiles of the pairs of a figure are so far apart, for as many pairs, that
their median is uncertain. It is missing in the tables that judge this figure, which are named at the end: the
geometric means judge the ratio to the best peer, others the percents of the peak or of the read bandwidth, or
the gain from a second thread. Ratios that these show beside are '?' where they are uncertain. --update writes
the tables between the lines <!-- NAME --> and <!-- /NAME --> of a Markdown file, NAME being peers unless
--block says another. A figure above what the machine can do is an error of measurement: it is named, and the
exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from re import Match

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.results import (FORMS, JUDGED_FIGURES, MOST_PERCENT, MOST_UNCERTAINTY, NAIVE,  # noqa: E402
                           OP_NAME, PEER_SPEED, most_certain, positive_of, read_cells, uncertainty_of)
from bench.results import judged as _judged, markdown_table as _table  # noqa: E402
from generator.document import replace_block  # noqa: E402
from generator.model import RequestError  # noqa: E402

LEAST_RATIO = 0.96  # of the best peer, in any cell
LARGE_M, SMALL_M = 128, 16
LEAST_SCALING = 0.95


@dataclass(frozen=True)
class Bars:
    """Least percents for a type."""

    peak: float  # at LARGE_M and more
    cold: float  # of min(peak, bandwidth), weights from memory, 1 < M <= SMALL_M


BARS = {"f32": Bars(91, 88), "bf16": Bars(92, 88), "s8s8": Bars(90, 80), "u8s8": Bars(93, 80)}
LEAST_READ_PERCENT = 95  # at M = 1, weights from memory


@dataclass(frozen=True)
class Cell:
    type: str
    m: int
    n: int
    k: int
    form: str
    cold: bool
    threads: int
    cells_of_kind: int  # how many bench_ops has that differ in their shape alone
    seconds: float
    figures: dict[str, float]  # the counters

    @property
    def shape(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def name(self) -> str:
        cold = ", cold" * self.cold
        return f"{self.type} {self.shape} {FORMS[self.form]}{cold}, threads: {self.threads}"

    @property
    def peers(self) -> dict[str, float]:
        """ukernel's speed by each one's."""
        names = [name.removesuffix(PEER_SPEED) for name in self.figures if name.endswith(PEER_SPEED)]
        return {name: self.figures[name] for name in names if name != NAIVE}

    @property
    def best_peer(self) -> str | None:
        peers = self.peers
        return min(peers, key=lambda name: peers[name]) if peers else None

    @property
    def ratio(self) -> float:
        """ukernel's speed by the best peer's."""
        return min(self.peers.values())

    @property
    def packing_seconds(self) -> float:
        """Of all weights, ahead of any product."""
        return self.figures["pack"] * self.seconds

    def uncertainty_of(self, name: str) -> float:
        return uncertainty_of(name, self.figures.__getitem__)

    def uncertainties(self, *names: str) -> dict[str, float]:
        return {name: self.uncertainty_of(name) for name in names}

    @property
    def uncertainty(self) -> float:
        """Of the most uncertain of the medians that bars are about."""
        judged = {*JUDGED_FIGURES, self.best_peer} & self.figures.keys()
        return max(self.uncertainty_of(name) for name in judged)

    @property
    def percents(self) -> dict[str, float]:
        return {name: value for name, value in self.figures.items() if name.endswith("%")}


@dataclass(frozen=True)
class Results:
    cpu: str
    peers: str
    date: str
    cells: list[Cell]

    def where(self, **wanted: object) -> list[Cell]:
        return [cell for cell in self.cells
                if all(getattr(cell, name) == value for name, value in wanted.items())]


def read(paths: Iterable[Path]) -> Results:
    (cpu, peers), date, cells = read_cells(paths, "bench_ops", ("cpu", "peers"), OP_NAME, _cell,
                                            most_certain)
    return Results(cpu, peers, date, cells)


def _needed(match: Match[str], entry: dict[str, object]) -> Iterator[str]:
    """The figures that a cell must have, positive."""
    yield from ("real_time", "cells_of_kind", "pairs", "GFLOP/s")
    packs_ahead = match["form"] in ("nk", "kn") and match["threads"] == "1"
    ratios = (["peak%"] + ["read%"] * bool(match["cold"]) + ["pack"] * packs_ahead
              + ["gain"] * (match["threads"] == "2"))
    for name in entry:
        if name.endswith(PEER_SPEED):
            yield name
            ratios.append(name.removesuffix(PEER_SPEED))
    for name in ratios:
        yield from (name, f"{name}_q1", f"{name}_q3")
    yield from ["bound%"] * bool(match["cold"]) + ["peak_gain", "scaling"] * (match["threads"] == "2")


def _cell(match: Match[str], entry: dict[str, object]) -> Cell:
    figures = {name: positive_of(entry, name, match[0]) for name in _needed(match, entry)}
    return Cell(match["type"], int(match["m"]), int(match["n"]), int(match["k"]), match["form"],
                bool(match["cold"]), int(match["threads"]), int(figures.pop("cells_of_kind")),
                figures.pop("real_time") / 1e3, figures)


def _ratio(cell: Cell, to: str, least: float | None = None) -> str:
    if cell.uncertainty_of(to) > MOST_UNCERTAINTY:
        return "?"
    return _judged(cell.figures[to], least, f"{cell.figures[to]:.2f}")


class Missing:
    """What is too uncertain for a table: reasons by table and cell."""

    def __init__(self) -> None:
        self.reasons: dict[str, dict[str, str]] = {}

    def is_certain(self, cell: Cell, table: str, judged: Mapping[str, float]) -> bool:
        """By the uncertainties of the figures that the table judges; if not, that is noted."""
        figure = max(judged, key=lambda name: judged[name])
        if judged[figure] <= MOST_UNCERTAINTY:
            return True
        self.reasons.setdefault(cell.name, {})[table] = f"{figure}, {100 * judged[figure]:.1f} %"
        return False


def _against_peers(results: Results, missing: Missing) -> list[str]:
    groups: dict[tuple[str, str, bool, int], list[Cell]] = {}
    for cell in results.cells:
        best = cell.best_peer
        if best and missing.is_certain(cell, "geometric means", cell.uncertainties(best)):
            groups.setdefault((cell.type, cell.form, cell.cold, cell.threads), []).append(cell)
    rows = []
    for (kind, form, cold, threads), cells in groups.items():
        ratios = {cell.shape: cell.ratio for cell in cells}
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
        worst = min(cells, key=lambda cell: cell.ratio)
        low = [f"{shape} {ratio:.2f}" for shape, ratio in ratios.items() if ratio < LEAST_RATIO]
        rows.append([kind, FORMS[form] + (", cold" if cold else ""), str(threads),
                     f"{len(cells)} of {cells[0].cells_of_kind}",
                     _judged(mean, 1, f"{mean:.2f}"),
                     f"{worst.ratio:.2f} at {worst.shape} ({worst.best_peer})",
                     ", ".join(low) or "none"])
    return _table(["type", "", "threads", "cells", "geometric mean of ukernel / best peer", "worst",
                   f"under {LEAST_RATIO}"], rows)


def _of_peak(results: Results, missing: Missing) -> list[str]:
    rows = []
    for cell in results.where(form="packed", cold=False, threads=1):
        if not missing.is_certain(cell, "peaks", cell.uncertainties("peak%")):
            continue
        bars = BARS.get(cell.type)
        peak = cell.figures["peak%"]
        best = cell.best_peer
        rows.append([
            cell.type, cell.shape, f"{cell.figures['GFLOP/s']:.1f}",
            _judged(peak, bars.peak if bars and cell.m >= LARGE_M else None, f"{peak:.1f}"),
            _ratio(cell, NAIVE) if NAIVE in cell.figures else "",
            _ratio(cell, best, LEAST_RATIO) if best else "",
            f"{best} {cell.figures[best + PEER_SPEED]:.1f}" if best else ""])
    return _table(["type", "M x N x K", "GFLOP/s", "% of peak", "by naive", "by best peer",
                   "best peer, GFLOP/s"], rows)


def _cold(results: Results, missing: Missing) -> list[str]:
    rows = []
    for cell in results.where(form="packed", cold=True):
        if not missing.is_certain(cell, "weights from memory", cell.uncertainties("peak%", "read%")):
            continue
        best = cell.best_peer
        read_percent, bound = cell.figures["read%"], cell.figures["bound%"]
        bars = BARS.get(cell.type)
        rows.append([cell.type, cell.shape, f"{cell.figures['GFLOP/s']:.1f}",
                     _judged(read_percent, LEAST_READ_PERCENT if cell.m == 1 else None,
                             f"{read_percent:.1f}"),
                     f"{cell.figures['peak%']:.1f}",
                     _judged(bound, bars.cold if bars and cell.m > 1 else None, f"{bound:.1f}"),
                     f"{_ratio(cell, best)} ({best})" if best else ""])
    return _table(["type", "M x N x K", "GFLOP/s", "% of read bandwidth", "% of peak",
                   "% of the lower bound", "by best peer"], rows)


def calls_until_packing_pays(packed: Cell, unpacked: Cell) -> str:
    """Each call with packed weights saves what the best peer needs more for unpacked ones."""
    saved = unpacked.seconds * unpacked.ratio - packed.seconds
    return "never" if saved <= 0 else str(max(1, math.ceil(unpacked.packing_seconds / saved)))


def _packing(results: Results, missing: Missing) -> list[str]:
    packed = {(cell.type, cell.shape): cell
              for cell in results.where(form="rows", cold=False, threads=1)}
    rows = []
    for form in ("nk", "kn"):
        for cell in results.where(form=form, threads=1):
            other, best = packed.get((cell.type, cell.shape)), cell.best_peer
            if cell.m > SMALL_M or not other or not best:
                continue
            # The time of a call is as certain as the peak's by it.
            judged = {**cell.uncertainties("peak%", "pack", best),
                      f"peak% of {FORMS['rows']}": other.uncertainty_of("peak%")}
            if missing.is_certain(cell, "packing", judged):
                rows.append([cell.type, cell.shape, FORMS[form],
                             f"{1e3 * cell.packing_seconds:.2f}",
                             f"{1e3 * other.seconds:.2f}",
                             f"{1e3 * cell.seconds * cell.ratio:.2f} ({best})",
                             calls_until_packing_pays(other, cell)])
    return _table(["type", "M x N x K", "", "packing, ms", "a call then, ms",
                   "best peer without packing, ms", "packing pays after calls"], rows)


def _scaling(results: Results, missing: Missing) -> list[str]:
    rows = []
    for cell in results.where(form="packed", threads=2):
        if not missing.is_certain(cell, "two threads", cell.uncertainties("gain")):
            continue
        gain, of_peak, ratio = (cell.figures[name] for name in ("gain", "peak_gain", "scaling"))
        of_peak_and_ratio = [f"{of_peak:.2f}", _judged(ratio, LEAST_SCALING if cell.m >= LARGE_M else None,
                                                       f"{ratio:.2f}")]
        # What the peak gains is computed from the operation's part of it.
        if cell.uncertainty_of("peak%") > MOST_UNCERTAINTY:
            of_peak_and_ratio = ["?", "?"]
        rows.append([cell.type, cell.shape, f"{gain:.2f}", *of_peak_and_ratio])
    return _table(["type", "M x N x K", "gain from the second thread", "of the peak", "ratio"], rows)


def _missing(results: Results, missing: Missing) -> list[str]:
    if not missing.reasons:
        return []
    lines = [f"- {cell.name}: " + ", ".join(f"{table} ({reason})" for table, reason in reasons.items())
             for cell in results.cells if (reasons := missing.reasons.get(cell.name))]
    return [f"Missing in the tables named, as the quartiles of a figure that those judge leave its median uncertain "
            f"by more than {100 * MOST_UNCERTAINTY:.0f} %:", "", *lines, ""]


def report(results: Results) -> str:
    missing = Missing()
    peak_bars = ", ".join(f"{name} {bars.peak:.0f}" for name, bars in BARS.items())
    cold_bars = ", ".join(f"{name} {bars.cold:.0f}" for name, bars in BARS.items())
    parts = _against_peers(results, missing)
    for title, table in (
            (f"One thread, operands packed; the bars from M = {LARGE_M} on are {peak_bars} % of the peak:",
             _of_peak(results, missing)),
            (f"Weights from memory; the bars are {LEAST_READ_PERCENT} % of the read bandwidth at M = 1 "
             f"and {cold_bars} % of what peak and bandwidth permit above:", _cold(results, missing)),
            ("When weights are worth packing:", _packing(results, missing)),
            (f"Two threads; the bar from M = {LARGE_M} on is {LEAST_SCALING} of what the peak gains:",
             _scaling(results, missing))):
        if table:
            parts += [title, "", *table]
    disturbed = len(missing.reasons)
    named = f" {disturbed} of {len(results.cells)} cells were disturbed: see the end." if disturbed else ""
    head = (f"{results.cpu}, {results.date}; against {results.peers}. Bold: misses its bar; '?': uncertain."
            f"{named}")
    return "\n".join([head, "", *parts, *_missing(results, missing)]).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULT.json")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the tables there")
    parser.add_argument("--block", default="peers", metavar="NAME",
                        help="between <!-- NAME --> and <!-- /NAME --> (default: %(default)s)")
    options = parser.parse_args()
    try:
        results = read(options.results)
        tables = report(results)
        print(tables)
        if options.update:
            replace_block(options.update, options.block, tables)
    except (RequestError, OSError) as error:
        print(f"peers.py: {error}", file=sys.stderr)
        return 2
    above = [f"{cell.name}: {name} {value:.1f}"
             for cell in results.cells for name, value in cell.percents.items() if value > MOST_PERCENT]
    for line in above:
        print(f"peers.py: above what the machine can do: {line}", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
