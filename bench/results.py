"""What the scripts that read results of benchmarks have to agree on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from re import Match, Pattern
from typing import Any, Generic, Protocol, TypeVar

from generator.model import RequestError

# A figure above this, in percent of what the machine can do, is an error of measurement.
MOST_PERCENT = 101

# The names of bench_ops, without what Google Benchmark adds.
OP_NAME = re.compile(r"(?P<type>\w+)/(?P<m>[1-9]\d*)x(?P<n>[1-9]\d*)x(?P<k>[1-9]\d*)/"
                     r"(?P<form>packed|rows|nk|kn)(?P<cold>/cold)?/threads:(?P<threads>[1-9]\d*)")
# What they say of what is packed before the clock starts.
FORMS = {"packed": "operands packed", "rows": "weights packed", "nk": "weights N x K",
         "kn": "weights K x N"}
# What Google Benchmark adds to names.
_ADDED_TO_NAME = re.compile(r"(/iterations:\d+)?(/repeats:\d+)?(/manual_time)?\Z")
# What bench_ops calls the speed of another contestant; without it, ukernel's by that one's.
PEER_SPEED = "_GFLOP/s"
NAIVE = "naive"  # the contestant that is no other library

# Of medians that tables show, by themselves: one that is less certain is disturbed.
MOST_UNCERTAINTY = 0.05


def median_uncertainty(lower: float, median: float, upper: float, count: float) -> float:
    """Of the median of so many values with these quartiles, by itself. The interval that has the true median
    in 95 of 100 cases is +- 1.57 quartile distances / sqrt(count): McGill, Tukey and Larsen, Variations of
    Box Plots, 1978."""
    return 1.57 * (upper - lower) / math.sqrt(count) / median


# Of an operation, beside the ratio to its best peer: what bars are about.
JUDGED_FIGURES = frozenset({"peak%", "read%", "gain"})


def uncertainty_of(name: str, figure_of: Callable[[str], float]) -> float:
    """Of a figure of bench_ops."""
    lower, median, upper = (figure_of(name + end) for end in ("_q1", "", "_q3"))
    return median_uncertainty(lower, median, upper, figure_of("pairs"))


def read_json(path: Path) -> Any:
    """A ValueError where it is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("nested too deep") from None


def text_of(members: Mapping[str, object], name: str) -> str:
    if name not in members:
        raise ValueError(f"it has no '{name}'")
    value = members[name]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"'{name}' is no text")
    return value


def day_of(context: Mapping[str, object]) -> str:
    date = text_of(context, "date")
    if not re.match(r"\d{4}-\d\d-\d\d(?!\d)", date):
        raise ValueError("'date' is no date")
    return date[:10]


def finite_number(value: object) -> float | None:
    """None: it is none, or none that a float can be."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def positive_of(members: Mapping[str, object], name: str, cell: str) -> float:
    number = finite_number(members.get(name))
    if number is None or number <= 0:
        raise ValueError(f"{cell}: '{name}' is no number above 0")
    return number


class Uncertain(Protocol):
    @property
    def uncertainty(self) -> Any: ...


UncertainCell = TypeVar("UncertainCell", bound=Uncertain)


def most_certain(runs: list[UncertainCell]) -> UncertainCell:
    return min(runs, key=lambda cell: cell.uncertainty)


Cell = TypeVar("Cell")


def read_cells(paths: Iterable[Path], program: str, machine: tuple[str, ...], name: Pattern[str],
               cell_of: Callable[[Match[str], dict[str, object]], Cell],
               one_of: Callable[[list[Cell]], Cell]) -> tuple[tuple[str, ...], str, list[Cell]]:
    """The machine, the dates and the cells of results that a program wrote on one machine, which these of
    their context tell. `one_of` makes one of all runs of a cell."""
    runs: dict[str, list[Cell]] = {}
    machines: set[tuple[str, ...]] = set()
    dates: set[str] = set()
    for path in paths:
        try:
            data = read_json(path)
            machines.add(tuple(text_of(data["context"], what) for what in machine))
            dates.add(day_of(data["context"]))
            for entry in data["benchmarks"]:
                if entry.get("run_type") == "aggregate":  # of the repetitions, which are there themselves
                    continue
                match = name.fullmatch(_ADDED_TO_NAME.sub("", entry["name"]))
                if not match:
                    raise RequestError(f"{path}: {entry['name']} is no name of {program}")
                if entry.get("error_occurred"):
                    raise RequestError(f"{path}: {entry['name']}: {entry['error_message']}")
                runs.setdefault(match[0], []).append(cell_of(match, entry))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RequestError(f"{path}: not a result of {program}: {error}") from error
    if not runs:
        raise RequestError(f"no cell of {program} in the files")
    if len(machines) > 1:
        raise RequestError(f"the files differ in {' or '.join(machine)}: "
                           + "; ".join(", ".join(found) for found in sorted(machines)))
    return *machines, " to ".join(sorted({min(dates), max(dates)})), [one_of(of_cell) for of_cell in runs.values()]


@dataclass(frozen=True)
class Results(Generic[Cell]):
    """Of a program whose machine is its CPU."""

    cpu: str
    date: str
    cells: list[Cell]


def read_results(paths: Iterable[Path], program: str, name: Pattern[str],
                 cell_of: Callable[[Match[str], dict[str, object]], Cell],
                 one_of: Callable[[list[Cell]], Cell]) -> Results[Cell]:
    (cpu,), date, cells = read_cells(paths, program, ("cpu",), name, cell_of, one_of)
    return Results(cpu, date, cells)


def judged(value: float, least: float | None, text: str) -> str:
    """The figure, bold where it misses its bar."""
    return f"**{text}**" if least is not None and value < least else text


def markdown_table(header: list[str], rows: list[list[str]]) -> list[str]:
    """The lines, with an empty one after them; none without rows."""
    if not rows:
        return []
    return ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]] + [""]
