"""LLVM IR of a tile, for a compiler to inline into its own."""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^define .*?(#\d+)", re.MULTILINE)
_TILE = re.compile(r"^define (?:dso_local )?void @uk_", re.MULTILINE)
_GROUP = re.compile(r"^attributes (#\d+) = \{(.*)\}$", re.MULTILINE)
# What says for which CPU and with which library a function is compiled, and what forbids inlining.
_OF_ITS_OWN = re.compile(r' "(?:target-cpu|target-features|tune-cpu|no-builtins)"(?:="[^"]*")?'
                         r"| (?:noinline|optnone)\b")


def for_inlining(ir: str) -> str:
    """All functions are inlined wherever they are called, and take the caller's target there; each
    keeps "min-legal-vector-width", which LLVM passes on to the caller. The tile is linkonce_odr: any
    number of modules may have it, and none keeps it once the calls are gone."""
    functions = set(_FUNCTION.findall(ir))

    def group(match: re.Match[str]) -> str:
        number, words = match.groups()
        inlined = " alwaysinline" if number in functions else ""
        return f"attributes {number} = {{{inlined}{_OF_ITS_OWN.sub('', words)}}}"

    return _TILE.sub("define linkonce_odr hidden void @uk_", _GROUP.sub(group, ir))
