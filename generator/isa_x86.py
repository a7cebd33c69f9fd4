"""The x86-64 levels: registers and primitives, as data."""

from __future__ import annotations

from generator.model import TYPES, Isa, Primitive

# Steps of a widening take {x}, the value so far; the first one takes the units as loaded.
Steps = tuple[str, ...]


def _setr(prefix: str, lane: str, values: list[int]) -> str:
    return f"{prefix}_setr_{lane}({', '.join(map(str, values))})"


def _permute2_512(lane: str, first: int, lanes: int) -> str:
    indices = _setr("_mm512", lane, list(range(first, 2 * lanes, 2)))
    return f"_mm512_permutex2var_{lane}({{a}}, {indices}, {{b}})"


def _shuffle_ps(prefix: str, si: str, control: str) -> str:
    cast = f"{prefix}_cast{si}_ps"
    return f"{prefix}_castps_{si}({prefix}_shuffle_ps({cast}({{a}}), {cast}({{b}}), {control}))"


SSE2 = Isa(
    name="sse2", arch="x86_64", includes=("arch/x86_64/sse2/idioms.h",), registers=16,
    vector_bytes=16, int_vector="__m128i",
    deinterleave={32: (_shuffle_ps("_mm", "si128", "0x88"), _shuffle_ps("_mm", "si128", "0xDD")),
                  64: ("_mm_unpacklo_epi64({a}, {b})", "_mm_unpackhi_epi64({a}, {b})")},
    broadcast={32: "_mm_set1_epi32(load_s32({p}))", 64: "_mm_set1_epi64x(load_s64({p}))"})

AVX2_FMA = Isa(
    name="avx2_fma", arch="x86_64", includes=("arch/x86_64/avx2_fma/idioms.h",), registers=16,
    vector_bytes=32, int_vector="__m256i",
    # Shuffles work in 128-bit halves: quarters 0 2 1 3 put the halves' results in order.
    deinterleave={32: tuple(f"_mm256_permute4x64_epi64({_shuffle_ps('_mm256', 'si256', c)}, 0xD8)"
                            for c in ("0x88", "0xDD")),
                  64: tuple(f"_mm256_permute4x64_epi64(_mm256_unpack{half}_epi64({{a}}, {{b}}), 0xD8)"
                            for half in ("lo", "hi"))},
    broadcast={32: "_mm256_set1_epi32(load_s32({p}))", 64: "_mm256_set1_epi64x(load_s64({p}))"})

AVX_VNNI = Isa(**{**AVX2_FMA.__dict__, "name": "avx_vnni"})

AVX512_BASE = Isa(
    name="avx512_base", arch="x86_64", includes=("arch/x86_64/avx512_base/idioms.h",), registers=32,
    vector_bytes=64, int_vector="__m512i",
    deinterleave={32: (_permute2_512("epi32", 0, 16), _permute2_512("epi32", 1, 16)),
                  64: (_permute2_512("epi64", 0, 8), _permute2_512("epi64", 1, 8))},
    broadcast={32: "_mm512_set1_epi32(load_s32({p}))", 64: "_mm512_set1_epi64(load_s64({p}))"})

AVX512_VNNI = Isa(**{**AVX512_BASE.__dict__, "name": "avx512_vnni"})
AVX512_BF16 = Isa(**{**AVX512_BASE.__dict__, "name": "avx512_bf16"})

ISAS = {isa.name: isa for isa in (SSE2, AVX2_FMA, AVX_VNNI, AVX512_BASE, AVX512_VNNI, AVX512_BF16)}


def expand(isa: Isa, lane_bits: int, units: int, padded: int) -> str:
    """Spreads rows of `units` lanes that lie back to back to rows of `padded` lanes. {x}."""
    lanes = isa.lanes(lane_bits)
    if isa.vector_bytes == 64:
        mask = sum(1 << lane for lane in range(lanes) if lane % padded < units)
        return f"_mm512_maskz_expand_epi{lane_bits}({mask:#x}, {{x}})"
    assert isa.vector_bytes == 32 and lane_bits == 32, "narrower vectors hold whole padded rows"
    source = [lane // padded * units + min(lane % padded, units - 1) for lane in range(lanes)]
    return f"_mm256_permutevar8x32_epi32({{x}}, {_setr('_mm256', 'epi32', source)})"


class _Names:
    """Spellings that depend only on the register width."""

    def __init__(self, isa: Isa) -> None:
        self.bits = isa.vector_bytes * 8
        self.mm = "_mm" if self.bits == 128 else f"_mm{self.bits}"
        self.si = f"si{self.bits}"
        self.v = f"__m{self.bits}"

    def widen(self, source: str, to: str) -> Steps:
        """cvtep*: SSE2 has none and interleaves with itself or zero instead."""
        if self.bits > 128:
            return (f"{self.mm}_cvt{source}_{to}({{x}})",)
        low8, low16 = "_mm_unpacklo_epi8", "_mm_unpacklo_epi16"
        zero = "_mm_setzero_si128()"
        return {
            ("epi8", "epi16"): (f"_mm_srai_epi16({low8}({{x}}, {{x}}), 8)",),
            ("epu8", "epi16"): (f"{low8}({{x}}, {zero})",),
            ("epi8", "epi32"): (f"{low8}({{x}}, {{x}})", f"_mm_srai_epi32({low16}({{x}}, {{x}}), 24)"),
            ("epu8", "epi32"): (f"{low8}({{x}}, {zero})", f"{low16}({{x}}, {zero})"),
            ("epu16", "epi32"): (f"{low16}({{x}}, {zero})",),
            ("epi16", "epi32"): (f"_mm_srai_epi32({low16}({{x}}, {{x}}), 16)",),
        }[source, to]

    def set1(self, value: str) -> str:
        return f"{self.mm}_set1_epi32({value})"

    def spread(self, shift: int, mask: str) -> str:
        """x | x << shift, masked: takes a value apart into two fields of the lane."""
        return (f"{self.mm}_and_{self.si}({self.mm}_or_{self.si}({{x}}, "
                f"{self.mm}_slli_epi32({{x}}, {shift})), {self.set1(mask)})")

    def sign_extend_nibbles(self, lane: str, bits: str) -> str:
        return (f"{self.mm}_sub_{lane}({self.mm}_xor_{self.si}({{x}}, {self.set1(bits)}), "
                f"{self.set1(bits)})")


def _integer_units(n: _Names, k: int) -> dict[str, tuple[int, Steps | None, Steps | None]]:
    """Per element type: unit bytes, widening as LHS and as RHS, to k elements in a 32-bit lane: s16
    each for k <= 2, bytes for k = 4. With k = 1 the lane's upper s16 is multiplied too, so one side
    has to have zero there: the LHS."""
    if k == 4:
        nibbles = (*n.widen("epu16", "epi32"), n.spread(8, "0x00FF00FF"), n.spread(4, "0x0F0F0F0F"),
                   n.sign_extend_nibbles("epi8", "0x08080808"))
        # The dot wants its LHS unsigned: flipping the sign bits of an s8 adds 128.
        flip = (f"{n.mm}_xor_{n.si}({{x}}, {n.set1('static_cast<int>(0x80808080)')})",)
        return {"s8": (4, flip, None), "u8": (4, None, None), "s4": (2, None, nibbles)}
    if k == 2:
        nibble_pair = (*n.widen("epu8", "epi32"), n.spread(12, "0x000F000F"))
        return {
            "s16": (4, None, None),
            "s8": (2, n.widen("epi8", "epi16"), n.widen("epi8", "epi16")),
            "u8": (2, n.widen("epu8", "epi16"), n.widen("epu8", "epi16")),
            "u4": (1, None, nibble_pair),
            "s4": (1, None, (*nibble_pair, n.sign_extend_nibbles("epi16", "0x00080008"))),
        }
    low_half = f"{n.mm}_and_{n.si}({{x}}, {n.set1('0xFFFF')})"
    return {
        "s16": (2, n.widen("epu16", "epi32"), n.widen("epu16", "epi32")),
        "s8": (1, (*n.widen("epi8", "epi32"), low_half), n.widen("epi8", "epi32")),
        "u8": (1, n.widen("epu8", "epi32"), n.widen("epu8", "epi32")),
    }


def _integer_primitives(isa: Isa) -> list[Primitive]:
    n = _Names(isa)
    has_vnni = isa.name.endswith("vnni")
    infix = "_avx" if isa.name == "avx_vnni" else ""
    found = []
    for k in (4, 2, 1) if has_vnni else (2, 1):
        units = _integer_units(n, k)
        for name in ("s8s8s32", "u8s8s32", "s8s4s32", "s16s16s32", "s16u4s32", "s16s8s32"):
            kind = TYPES[name]
            if kind.lhs not in units or kind.rhs not in units:
                continue
            lhs_bytes, widen_lhs, _ = units[kind.lhs]
            rhs_bytes, _, widen_rhs = units[kind.rhs]
            sums = subtract = None
            if k == 4:
                dot = f"{n.mm}_dpbusd{infix}_epi32({{acc}}, {{a}}, {{b}})"
                if kind.lhs == "s8":
                    sums = f"{n.mm}_dpbusd{infix}_epi32({{sums}}, {n.mm}_set1_epi8(-128), {{b}})"
                    subtract = f"{n.mm}_sub_epi32({{acc}}, {{sums}})"
            elif has_vnni:
                dot = f"{n.mm}_dpwssd{infix}_epi32({{acc}}, {{a}}, {{b}})"
            else:
                dot = f"{n.mm}_add_epi32({{acc}}, {n.mm}_madd_epi16({{a}}, {{b}}))"
            found.append(Primitive(
                isa, kind, k, 32, isa.int_vector, isa.int_vector, "{x}", f"{n.mm}_setzero_{n.si}()", dot,
                "{load}", "{acc}", "exact", lhs_bytes, rhs_bytes, widen_lhs, widen_rhs, sums, subtract,
                temporaries=(1 if sums else 0) if has_vnni else 1, multiplies=1 if has_vnni else 2))
    return found


def _float_primitives(isa: Isa) -> list[Primitive]:
    n = _Names(isa)
    has_fma = isa is not SSE2

    def as_ps(x: str) -> str:
        return f"{n.mm}_cast{n.si}_ps({x})"

    def as_int(x: str) -> str:
        return f"{n.mm}_castps_{n.si}({x})"

    def multiply_add(lane: str) -> str:
        if has_fma:
            return f"{n.mm}_fmadd_{lane}({{a}}, {{b}}, {{acc}})"
        return f"{n.mm}_add_{lane}({{acc}}, {n.mm}_mul_{lane}({{a}}, {{b}}))"

    f16: Steps = (as_int("f16_to_f32({x})"),)
    bf16: Steps = (as_int("bf16_to_f32({x})"),)
    acc = {"zero": f"{n.mm}_setzero_ps()", "acc_vector": n.v, "operand_vector": n.v,
           "operand": as_ps("{x}"), "lane_bits": 32, "k": 1}
    out_f32 = {"load_out": as_ps("{load}"), "store_out": as_int("{acc}")}
    chain = "fma_chain" if has_fma else "mul_add_chain"
    halves = {"lhs_unit_bytes": 2, "rhs_unit_bytes": 2}
    rounding = 8 if isa.registers == 16 else 15  # what compilers keep in flight
    found = [
        Primitive(isa, TYPES["f32f32f32"], dot=multiply_add("ps"), numerics=chain, lhs_unit_bytes=4,
                  rhs_unit_bytes=4, **acc, **out_f32, multiplies=1 if has_fma else 2,
                  temporaries=0 if has_fma else 1),
        Primitive(isa, TYPES["f64f64f64"], 1, 64, n.v + "d", n.v + "d",
                  f"{n.mm}_cast{n.si}_pd({{x}})", f"{n.mm}_setzero_pd()",
                  multiply_add("pd"), f"{n.mm}_cast{n.si}_pd({{load}})", f"{n.mm}_castpd_{n.si}({{acc}})",
                  chain, 8, 8, multiplies=1 if has_fma else 2, temporaries=0 if has_fma else 1),
    ]
    for name, widen in (("f16", f16), ("bf16", bf16)):
        common = {**acc, **halves, "widen_lhs": widen, "widen_rhs": widen}
        plain = {"dot": multiply_add("ps"), "multiplies": 1 if has_fma else 2,
                 "temporaries": 0 if has_fma else 1}
        out_half = {"load_out": f"{name}_to_f32({{load}})", "store_out": f"f32_to_{name}({{acc}})"}
        # Products of two f16 are exact in f32, so mul + add is the FMA chain; those of two bf16 can
        # underflow.
        to_f32 = "fma_chain" if has_fma or name == "f16" else "mul_add_chain"
        found += [
            Primitive(isa, TYPES[f"{name}{name}f32"], numerics=to_f32, **common, **out_f32, **plain),
            Primitive(isa, TYPES[f"{name}{name}{name}"], numerics="f32acc", **common, **out_half,
                      **plain),
            Primitive(isa, TYPES[f"{name}{name}{name}"], numerics="round_each_step", **common,
                      **out_half, dot=f"fma_rounded_to_{name}({{acc}}, {{a}}, {{b}})",
                      temporaries=rounding, multiplies=8),
        ]
    return found


def _bf16_dot_primitives(isa: Isa) -> list[Primitive]:
    common = {"k": 2, "lane_bits": 32, "acc_vector": "__m512", "operand_vector": "__m512bh",
              "operand": "(__m512bh)({x})", "zero": "_mm512_setzero_ps()",
              "dot": "_mm512_dpbf16_ps({acc}, {a}, {b})", "lhs_unit_bytes": 4, "rhs_unit_bytes": 4}
    return [
        Primitive(isa, TYPES["bf16bf16f32"], load_out="_mm512_castsi512_ps({load})",
                  store_out="_mm512_castps_si512({acc})", numerics="bf16_dot", **common),
        Primitive(isa, TYPES["bf16bf16bf16"], load_out="bf16_to_f32({load})",
                  store_out="f32_to_bf16({acc})", numerics="bf16_dot_f32acc", **common),
    ]


PRIMITIVES: dict[str, list[Primitive]] = {
    isa.name: (_bf16_dot_primitives(isa) if isa is AVX512_BF16 else
               _integer_primitives(isa) if isa in (AVX_VNNI, AVX512_VNNI) else
               _float_primitives(isa) + _integer_primitives(isa))
    for isa in ISAS.values()
}
