"""All architectures: their levels and what these have."""

from __future__ import annotations

from types import ModuleType

from generator import isa_arm, isa_x86
from generator.model import Isa, Primitive

_MODULES: dict[str, ModuleType] = {"x86_64": isa_x86, "arm_64": isa_arm}


def primitives(arch: str) -> dict[str, list[Primitive]]:
    """By level."""
    return _MODULES[arch].PRIMITIVES


def expand(isa: Isa, lane_bits: int, units: int, padded: int) -> str:
    """Spreads rows of `units` lanes that lie back to back to rows of `padded` lanes. {x}."""
    return _MODULES[isa.arch].expand(isa, lane_bits, units, padded)


def int_zero(isa: Isa) -> str:
    return _MODULES[isa.arch].int_zero(isa)


def set1(isa: Isa, value: str) -> str:
    """32-bit lanes, as accumulators of integers."""
    return _MODULES[isa.arch].set1(isa, value)
