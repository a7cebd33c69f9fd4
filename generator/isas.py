"""All architectures: their levels and what these have."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from generator.model import Isa, Primitive

_MODULES = {"x86_64": "generator.isa_x86", "arm_64": "generator.isa_arm"}


@cache
def _module(arch: str) -> ModuleType:
    return import_module(_MODULES[arch])


def primitives(arch: str) -> dict[str, list[Primitive]]:
    """By level."""
    return _module(arch).PRIMITIVES


def expand(isa: Isa, lane_bits: int, units: int, padded: int) -> str:
    """Spreads rows of `units` lanes that lie back to back to rows of `padded` lanes. {x}."""
    return _module(isa.arch).expand(isa, lane_bits, units, padded)


def int_zero(isa: Isa) -> str:
    return _module(isa.arch).int_zero(isa)


def set1(isa: Isa, value: str) -> str:
    """32-bit lanes, as accumulators of integers."""
    return _module(isa.arch).set1(isa, value)
