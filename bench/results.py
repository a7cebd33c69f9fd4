"""What the scripts that read results of benchmarks have to agree on."""

from __future__ import annotations

import re

# A figure above this, in percent of what the machine can do, is an error of measurement.
MOST_PERCENT = 101

# The names of bench_ops, without what Google Benchmark adds.
OP_NAME = re.compile(r"(?P<type>\w+)/(?P<m>[1-9]\d*)x(?P<n>[1-9]\d*)x(?P<k>[1-9]\d*)/"
                     r"(?P<form>packed|rows|nk|kn)(?P<cold>/cold)?/threads:(?P<threads>[1-9]\d*)")
# What bench_ops calls the speed of another contestant; without it, ukernel's by that one's.
PEER_SPEED = "_GFLOP/s"
