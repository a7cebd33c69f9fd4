"""Which primitive serves a tile."""

from __future__ import annotations

from generator.isas import primitives
from generator.model import Primitive, RequestError, Tile


def choose_primitive(tile: Tile) -> Primitive:
    """The one that consumes most k per dot, of those that divide K0 into whole dots."""
    of_level = primitives(tile.arch)
    if tile.isa not in of_level:
        raise RequestError(f"unknown level '{tile.isa}'; there are {', '.join(of_level)}")
    fitting = [p for p in of_level[tile.isa]
               if p.type == tile.type and p.numerics.endswith("f32acc") == tile.f32acc
               and tile.k0 % p.k == 0]
    if not fitting:
        raise RequestError(f"{tile.isa} adds nothing for {tile.type.name} with K0 = {tile.k0}"
                           + (" and f32 accumulation" if tile.f32acc else ""))
    return max(fitting, key=lambda p: p.k)
