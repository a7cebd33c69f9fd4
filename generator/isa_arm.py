"""The 64-bit Arm levels: registers and primitives, as data.

Rows are loaded as they lie in memory, several to a vector, and the dots take a lane of it: a broadcast
load for each row would bind the load ports. All vectors in memory's order are uint8x16_t.

Costs are those of Neoverse V2: four vector ports, two of which multiply integers and convert floats;
FMAs and dot products run on all four. What runs on all four counts as `any`. An accumulator is passed
on from one instruction to the next late, so that chains are short.
"""

from __future__ import annotations

from generator.model import TYPES, Core, Cost, Isa, Primitive, Steps


def _as(to: str, x: str = "{x}") -> str:
    """An integer vector as one of lanes `to`."""
    return x if to == "u8" else f"vreinterpretq_{to}_u8({x})"


def _bytes(lane: str, x: str = "{x}") -> str:
    """A vector of lanes `lane` as an integer vector."""
    return x if lane == "u8" else f"vreinterpretq_u8_{lane}({x})"


def _two(instruction: str, lane: str) -> str:
    """Of two integer vectors, {a} and {b}."""
    return _bytes(lane, f"{instruction}_{lane}({_as(lane, '{a}')}, {_as(lane, '{b}')})")


_CORE = Core("Arm", vector_ports=4, shuffle_ports=4, loads=3, issued=8, vectors_issued=8)


def _level(name: str, idioms: str = "arch/arm_64/neon/idioms.h") -> Isa:
    lanes = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}
    return Isa(
        name=name, arch="arm_64", includes=(idioms,), registers=32,
        vector_bytes=16, cores=(_CORE,), int_vector="uint8x16_t",
        deinterleave={bits: (_two("vuzp1q", lane), _two("vuzp2q", lane))
                      for bits, lane in lanes.items()},
        deinterleave_shuffles=1,
        broadcast={bits: _bytes(lane, f"vdupq_laneq_{lane}({_as(lane, f'load_128<{bits // 8}>({{p}})')}, 0)")
                   for bits, lane in lanes.items()} | {128: "load_128<16>({p})"},
        broadcast_shuffles=1,
        join={32: _two("vzip1q", "u32"), 64: _two("vzip1q", "u64")},
        second={32: _bytes("u32", f"vdupq_laneq_u32({_as('u32')}, 1)"),
                64: _bytes("u64", f"vdupq_laneq_u64({_as('u64')}, 1)")})


NEON = _level("neon")
FULLFP16 = _level("fullfp16", "arch/arm_64/fullfp16/idioms.h")
FP16FML = _level("fp16fml", "arch/arm_64/fp16fml/idioms.h")
BF16 = _level("bf16")
DOTPROD = _level("dotprod")
I8MM = _level("i8mm")

ISAS = {isa.name: isa for isa in (NEON, FULLFP16, FP16FML, BF16, DOTPROD, I8MM)}


def expand(isa: Isa, lane_bits: int, units: int, padded: int) -> str:
    size = lane_bits // 8
    indices = []
    for byte in range(isa.vector_bytes):
        row, unit = divmod(byte // size, padded)
        # Past the end, an index gives zero.
        indices.append((row * units + unit) * size + byte % size if unit < units else 255)
    return f"vqtbl1q_u8({{x}}, uint8x16_t{{{{{', '.join(map(str, indices))}}}}})"


def int_zero(isa: Isa) -> str:
    assert isa.arch == "arm_64"
    return "vdupq_n_u8(0)"


def set1(isa: Isa, value: str) -> str:
    assert isa.arch == "arm_64"
    return f"vdupq_n_s32({value})"


# ---------------------------------------------------------------- integers

# A lane of s16 from a byte; from the lower and the upper half of a byte.
_WIDEN_S8: Steps = (_bytes("s16", f"vmovl_s8(vget_low_s8({_as('s8')}))"),)
_WIDEN_U8: Steps = (_bytes("u16", "vmovl_u8(vget_low_u8({x}))"),)
_LOW_S4 = _bytes("s8", f"vshrq_n_s8(vshlq_n_s8({_as('s8')}, 4), 4)")
_HIGH_S4 = _bytes("s8", f"vshrq_n_s8({_as('s8')}, 4)")
_LOW_U4, _HIGH_U4 = "vandq_u8({x}, vdupq_n_u8(15))", "vshrq_n_u8({x}, 4)"


def _evens_and_odds(lane: str) -> tuple[Steps, Steps]:
    """Elements 0 2 4 ... and 1 3 5 ... of two vectors."""
    return tuple((_two(f"vuzp{n}q", lane).format(a="{x0}", b="{x1}"),) for n in (1, 2))


_S32_ACCUMULATORS = {
    "lane_bits": 32, "acc_vector": "int32x4_t", "zero": "vdupq_n_s32(0)", "numerics": "exact",
    "load_out": _as("s32", "{load}"), "store_out": _bytes("s32", "{acc}"),
    "acc_to_int": _bytes("s32"), "int_to_acc": _as("s32"), "add": "vaddq_s32({a}, {b})"}


def _widening_primitives() -> list[Primitive]:
    """Multiplications of s16: an operand of eight columns feeds two accumulators. Two four-bit
    elements of a column are two parts."""
    one, two = ((0,),), ((0,), (1,))
    common = {
        **_S32_ACCUMULATORS, "operand_vector": "int16x8_t", "operand": _as("s16"), "operand_bits": 16,
        "dot": "vmlal_s16({acc}, vget_low_s16({b}), vget_low_s16({a}))",
        "high_dot": "vmlal_high_s16({acc}, {b}, {a})",
        "lane_dot": "vmlal_laneq_s16({acc}, vget_low_s16({b}), {a}, {lane})",
        "high_lane_dot": "vmlal_high_laneq_s16({acc}, {b}, {a}, {lane})",
        "dot_cost": Cost(multiply=1), "latency": 1}
    as_s16 = {"s16": ((), Cost()), "s8": (_WIDEN_S8, Cost(multiply=1)),
              "u8": (_WIDEN_U8, Cost(multiply=1))}
    found = []
    for name in ("s8s8s32", "u8s8s32", "s16s16s32", "s16s8s32"):
        kind = TYPES[name]
        (lhs, lhs_cost), (rhs, rhs_cost) = as_s16[kind.lhs], as_s16[kind.rhs]
        found.append(Primitive(
            NEON, kind, one, lhs_unit_bytes=int(kind.lhs[1:]) // 8,
            rhs_unit_bytes=int(kind.rhs[1:]) // 8, decode=(rhs,), decode_cost=rhs_cost,
            decode_rows=(lhs,), decode_rows_cost=lhs_cost, **common))
    evens = _bytes("s16", f"vshrq_n_s16(vshlq_n_s16({_as('s16')}, 8), 8)")
    odds = _bytes("s16", f"vshrq_n_s16({_as('s16')}, 8)")
    return found + [
        Primitive(NEON, TYPES["s8s4s32"], two, lhs_unit_bytes=2, rhs_unit_bytes=1,
                  decode=((_LOW_S4, *_WIDEN_S8), (_HIGH_S4, *_WIDEN_S8)), decode_cost=Cost(5),
                  decode_rows=((evens,), (odds,)), decode_rows_cost=Cost(3), **common),
        Primitive(NEON, TYPES["s16u4s32"], two, lhs_unit_bytes=4, rhs_unit_bytes=1,
                  decode=((_LOW_U4, *_WIDEN_U8), (_HIGH_U4, *_WIDEN_U8)), decode_cost=Cost(3, 1),
                  decode_rows=_evens_and_odds("u16"), decode_rows_cost=Cost(any=2), registers=1,
                  **common),
    ]


def _dot_primitives() -> list[Primitive]:
    """Four products a lane. Four-bit elements: the lower halves of a column's bytes, which are the
    even elements, then the upper ones.

        column: k = 0 2 4 6, k = 1 3 5 7       row: alike
    """
    quad, quads = ((0, 1, 2, 3),), ((0, 2, 4, 6), (1, 3, 5, 7))

    def operand(lane: str) -> dict:
        return {"operand_vector": f"{lane.replace('s', 'int').replace('u', 'uint')}x16_t",
                "operand": _as(lane)}

    s8s8 = {"dot": "vdotq_s32({acc}, {b}, {a})", "lane_dot": "vdotq_laneq_s32({acc}, {b}, {a}, {lane})",
            "dot_cost": Cost(any=1), "latency": 1, **operand("s8"), **_S32_ACCUMULATORS}
    u8s8 = s8s8 | {
        "dot": "vusdotq_s32({acc}, vreinterpretq_u8_s8({a}), {b})",
        "lane_dot": "vsudotq_laneq_s32({acc}, {b}, vreinterpretq_u8_s8({a}), {lane})"}

    def unsigned(instruction: str, acc: str, operands: str) -> str:
        return f"vreinterpretq_s32_u32({instruction}(vreinterpretq_u32_s32({acc}), {operands}))"

    # Both operands are unsigned: a column's elements become so with their sign bits flipped.
    u8u8 = s8s8 | operand("u8") | {"dot": unsigned("vdotq_u32", "{acc}", "{b}, {a}"),
                                   "lane_dot": unsigned("vdotq_laneq_u32", "{acc}", "{b}, {a}, {lane}")}
    return [
        Primitive(DOTPROD, TYPES["s8s8s32"], quad, lhs_unit_bytes=4, rhs_unit_bytes=4, decode=((),),
                  decode_rows=((),), **s8s8),
        Primitive(DOTPROD, TYPES["s8s4s32"], quads, lhs_unit_bytes=8, rhs_unit_bytes=4,
                  decode=((_LOW_S4,), (_HIGH_S4,)), decode_cost=Cost(3),
                  decode_rows=_evens_and_odds("u8"), decode_rows_cost=Cost(any=2), **s8s8),
        Primitive(DOTPROD, TYPES["u8s8s32"], quad, lhs_unit_bytes=4, rhs_unit_bytes=4,
                  decode=(("veorq_u8({x}, vdupq_n_u8(128))",),), decode_cost=Cost(any=1),
                  decode_rows=((),), rhs_offset=128, row_sums_cost=Cost(any=1), registers=1,
                  row_sums=unsigned("vdotq_u32", "{sums}", "{x}, vdupq_n_u8(128)"),
                  subtract="vsubq_s32({a}, {b})", **u8u8),
        Primitive(I8MM, TYPES["u8s8s32"], quad, lhs_unit_bytes=4, rhs_unit_bytes=4, decode=((),),
                  decode_rows=((),), **u8s8),
    ]


def _matrix_primitives() -> list[Primitive]:
    """Two rows by two columns of eight products. Four-bit elements as for the dots; evens and odds of
    two vectors are those of one row after those of the other, as the instruction takes them.

        column: k = 0 2 4 ... 14, k = 1 3 5 ... 15       row: alike
    """
    octet = (tuple(range(8)),)
    octets = (tuple(range(0, 16, 2)), tuple(range(1, 16, 2)))
    common = {**_S32_ACCUMULATORS, "operand_bits": 64, "acc_rows": 2, "dot_cost": Cost(any=1),
              "latency": 1, "operand_vector": "int8x16_t", "operand": _as("s8")}
    s8s8 = {"dot": "vmmlaq_s32({acc}, {a}, {b})", **common}
    u8s8 = {"dot": "vusmmlaq_s32({acc}, vreinterpretq_u8_s8({a}), {b})", **common}
    return [
        Primitive(I8MM, TYPES["s8s8s32"], octet, lhs_unit_bytes=8, rhs_unit_bytes=8, decode=((),),
                  decode_rows=((),), **s8s8),
        Primitive(I8MM, TYPES["u8s8s32"], octet, lhs_unit_bytes=8, rhs_unit_bytes=8, decode=((),),
                  decode_rows=((),), **u8s8),
        Primitive(I8MM, TYPES["s8s4s32"], octets, lhs_unit_bytes=16, rhs_unit_bytes=8,
                  decode=((_LOW_S4,), (_HIGH_S4,)), decode_cost=Cost(3),
                  decode_rows=_evens_and_odds("u8"), decode_rows_cost=Cost(any=2), **s8s8),
    ]


# ---------------------------------------------------------------- floats

_F32_ACCUMULATORS = {
    "lane_bits": 32, "acc_vector": "float32x4_t", "zero": "vdupq_n_f32(0)",
    "acc_to_int": _bytes("f32"), "int_to_acc": _as("f32")}
_F32_OUT = {"load_out": _as("f32", "{load}"), "store_out": _bytes("f32", "{acc}")}
_F32_OPERANDS = {"operand_vector": "float32x4_t", "operand": _as("f32")}


def _half_out(name: str) -> dict:
    """OUT of 16 bits a lane, in the lower half of a vector."""
    load = f"{name}_to_f32(vget_low_u16({_as('u16', '{load}')}))"
    store = _bytes("u16", f"vcombine_u16(f32_to_{name}({{acc}}), vdup_n_u16(0))")
    return {"load_out": load, "store_out": store}


def _fma(lane: str) -> dict:
    return {"dot": f"vfmaq_{lane}({{acc}}, {{b}}, {{a}})",
            "lane_dot": f"vfmaq_laneq_{lane}({{acc}}, {{b}}, {{a}}, {{lane}})",
            "dot_cost": Cost(any=1), "latency": 2}


# fma_rounded_to_<name> of idioms.h: cost, cycles through the accumulator, and what compilers keep in
# flight.
_ROUNDING = {"f16": (Cost(multiply=10, any=2), 24, 18), "bf16": (Cost(multiply=1, any=4), 10, 14)}


def _float_primitives() -> list[Primitive]:
    one = ((0,),)
    found = [
        Primitive(NEON, TYPES["f32f32f32"], one, numerics="fma_chain", lhs_unit_bytes=4,
                  rhs_unit_bytes=4, decode=((),), decode_rows=((),), **_F32_ACCUMULATORS, **_F32_OUT,
                  **_F32_OPERANDS, **_fma("f32")),
        Primitive(NEON, TYPES["f64f64f64"], one, 64, "float64x2_t", "float64x2_t", _as("f64"),
                  "vdupq_n_f64(0)", load_out=_as("f64", "{load}"), store_out=_bytes("f64", "{acc}"),
                  numerics="fma_chain", lhs_unit_bytes=8, rhs_unit_bytes=8, decode=((),),
                  decode_rows=((),), **_fma("f64")),
    ]
    # bf16 is interleaved with zero.
    for name, cost, constants in (("f16", Cost(multiply=1), 0), ("bf16", Cost(any=1), 2)):
        widen = (_bytes("f32", f"{name}_to_f32(vget_low_u16({_as('u16')}))"),)
        common = {"k_order": one, "lhs_unit_bytes": 2, "rhs_unit_bytes": 2, "decode": (widen,),
                  "decode_cost": cost, "decode_rows": (widen,), "decode_rows_cost": cost,
                  **_F32_ACCUMULATORS, **_F32_OPERANDS}
        rounding_cost, latency, registers = _ROUNDING[name]
        found += [
            Primitive(NEON, TYPES[f"{name}{name}f32"], numerics="fma_chain", registers=constants,
                      **common, **_F32_OUT, **_fma("f32")),
            Primitive(NEON, TYPES[f"{name}{name}{name}"], numerics="f32acc", registers=constants,
                      **common, **_half_out(name), **_fma("f32")),
            Primitive(NEON, TYPES[f"{name}{name}{name}"], numerics="round_each_step", **common,
                      **_half_out(name),
                      lane_dot=f"fma_rounded_to_{name}<{{lane}}>({{acc}}, {{b}}, {{a}})",
                      dot=f"fma_rounded_to_{name}<0>({{acc}}, {{b}}, {{a}})", dot_cost=rounding_cost,
                      latency=latency, registers=registers),
        ]
    return found


def _f16_primitives() -> list[Primitive]:
    """FMAs of f16, which round to f16."""
    return [Primitive(
        FULLFP16, TYPES["f16f16f16"], ((0,),), 16, "float16x8_t", "float16x8_t", _as("f16"),
        "vreinterpretq_f16_u16(vdupq_n_u16(0))", load_out=_as("f16", "{load}"),
        store_out=_bytes("f16", "{acc}"), numerics="round_each_step", lhs_unit_bytes=2,
        rhs_unit_bytes=2, decode=((),), decode_rows=((),),
        **(_fma("f16") | {"lane_dot": "fma_f16<{lane}>({acc}, {b}, {a})"}))]


def _f16_to_f32_primitives() -> list[Primitive]:
    """FMAs of f16 into f32: an operand of eight columns feeds two accumulators."""
    common = {
        "k_order": ((0,),), "lhs_unit_bytes": 2, "rhs_unit_bytes": 2, "decode": ((),),
        "decode_rows": ((),), "operand_vector": "float16x8_t", "operand": _as("f16"),
        "operand_bits": 16, "dot": "vfmlalq_low_f16({acc}, {b}, {a})",
        "high_dot": "vfmlalq_high_f16({acc}, {b}, {a})",
        "lane_dot": "fma_low<{lane}>({acc}, {b}, {a})",
        "high_lane_dot": "fma_high<{lane}>({acc}, {b}, {a})",
        "dot_cost": Cost(any=1), "latency": 2, **_F32_ACCUMULATORS}
    return [Primitive(FP16FML, TYPES["f16f16f32"], numerics="fma_chain", **common, **_F32_OUT),
            Primitive(FP16FML, TYPES["f16f16f16"], numerics="f32acc", **common, **_half_out("f16"))]


def _bf16_primitives() -> list[Primitive]:
    """Two rows by two columns of four products; two products a lane."""
    operand = {"decode": ((),), "decode_rows": ((),), "operand_vector": "bfloat16x8_t",
               "operand": _as("bf16"), "dot_cost": Cost(any=1), "latency": 2,
               "add": "vaddq_f32({a}, {b})", **_F32_ACCUMULATORS}
    matrix = {"k_order": ((0, 1, 2, 3),), "lhs_unit_bytes": 8, "rhs_unit_bytes": 8,
              "operand_bits": 64, "acc_rows": 2, "dot": "vbfmmlaq_f32({acc}, {a}, {b})", **operand}
    pairs = {"k_order": ((0, 1),), "lhs_unit_bytes": 4, "rhs_unit_bytes": 4,
             "dot": "vbfdotq_f32({acc}, {b}, {a})",
             "lane_dot": "vbfdotq_laneq_f32({acc}, {b}, {a}, {lane})", **operand}
    return [Primitive(BF16, TYPES[f"bf16bf16{out}"], numerics=numerics, **form, **of_out)
            for form in (matrix, pairs)
            for out, numerics, of_out in (("f32", "bf16_dot", _F32_OUT),
                                          ("bf16", "bf16_dot_f32acc", _half_out("bf16")))]


_ALL = [*_float_primitives(), *_widening_primitives(), *_f16_primitives(), *_f16_to_f32_primitives(),
        *_bf16_primitives(), *_dot_primitives(), *_matrix_primitives()]
PRIMITIVES: dict[str, list[Primitive]] = {
    name: [p for p in _ALL if p.isa is isa] for name, isa in ISAS.items()}
