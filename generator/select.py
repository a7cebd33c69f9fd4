"""Which primitive serves a tile."""

from __future__ import annotations

from generator.isa_x86 import PRIMITIVES
from generator.model import Primitive, RequestError, Tile


def choose_primitive(tile: Tile) -> Primitive:
    """The one that consumes most k per dot, of those that divide K0 into whole dots."""
    if tile.isa not in PRIMITIVES:
        raise RequestError(f"unknown level '{tile.isa}'; there are {', '.join(PRIMITIVES)}")
    fitting = [p for p in PRIMITIVES[tile.isa]
               if p.type == tile.type and p.numerics.endswith("f32acc") == tile.f32acc
               and tile.k0 % p.k == 0]
    if not fitting:
        raise RequestError(f"{tile.isa} adds nothing for {tile.type.name} with K0 = {tile.k0}"
                           + (" and f32 accumulation" if tile.f32acc else ""))
    return max(fitting, key=lambda p: p.k)
