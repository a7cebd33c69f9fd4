"""What the scripts that read results of benchmarks have to agree on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

# A figure above this, in percent of what the machine can do, is an error of measurement.
MOST_PERCENT = 101

# The names of bench_ops, without what Google Benchmark adds.
OP_NAME = re.compile(r"(?P<type>\w+)/(?P<m>[1-9]\d*)x(?P<n>[1-9]\d*)x(?P<k>[1-9]\d*)/"
                     r"(?P<form>packed|rows|nk|kn)(?P<cold>/cold)?/threads:(?P<threads>[1-9]\d*)")
# What bench_ops calls the speed of another contestant; without it, ukernel's by that one's.
PEER_SPEED = "_GFLOP/s"

# Of medians that tables show, by themselves: one that is less certain is disturbed.
MOST_UNCERTAINTY = 0.05


def median_uncertainty(lower: float, median: float, upper: float, count: float) -> float:
    """Of the median of so many values with these quartiles, by itself. The interval that has the true median
    in 95 of 100 cases is +- 1.57 quartile distances / sqrt(count): McGill, Tukey and Larsen, Variations of
    Box Plots, 1978."""
    return 1.57 * (upper - lower) / math.sqrt(count) / median


def text_of(members: Mapping[str, object], name: str) -> str:
    value = members[name]
    if not isinstance(value, str):
        raise ValueError(f"'{name}' is no text")
    return value


def positive_of(members: Mapping[str, object], name: str, cell: str) -> float:
    value = members.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{cell}: '{name}' is no number above 0")
    return float(value)


def markdown_table(header: list[str], rows: list[list[str]]) -> list[str]:
    """The lines, with an empty one after them; none without rows."""
    if not rows:
        return []
    return ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]] + [""]
