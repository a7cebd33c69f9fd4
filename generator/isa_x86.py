"""The x86-64 levels: registers and primitives, as data.

Costs are in instructions of Intel cores since Skylake: vector ports 0, 1 and 5, of which 0 and 1 multiply and
5 shuffles; with 512-bit vectors, 0 and 5. AMD's since Zen 3 have four: two multiply, two add floats, and one
of each shuffles. Six vector instructions a cycle, copies and loads among them, were measured to pass there, on
Zen 4 with all others; a conversion from or to f16 takes as long as three on Zen 5, on Zen 4 a shuffle and an
addition. With 512-bit vectors Zen 4 takes two cycles where Zen 5 takes one, for loads too, but for broadcasts. Its
shifts, and conversions of f16 in memory, were measured to pass beside as many multiplications.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from generator.model import TYPES, Core, Cost, Isa, Primitive, Steps

# Of the plans that the wish to suit Zen 4, too, changes, as many were slower there as were faster.
_ZEN4 = Core("Zen 4", vector_ports=4, shuffle_ports=2, issued=6, vectors_issued=6, adds_apart=True,
             half_conversion=Cost(shuffle=1, add=1), half_widening=Cost(add=1), shift=Cost(add=1), chooses=False,
             measured_contention={frozenset({"issue", "ports"}): 0.23, frozenset({"chain", "ports"}): 0.08,
                                  frozenset({"loads", "ports"}): 0.14})
# Measured after all plans were chosen.
_ZEN3 = replace(_ZEN4, name="Zen 3",
                measured_contention={frozenset({"issue", "ports"}): 0.33, frozenset({"chain", "ports"}): 0.01,
                                     frozenset({"loads", "ports"}): 0.23})
_ZEN5 = Core("Zen 5", vector_ports=4, shuffle_ports=2, issued=8, vectors_issued=6, adds_apart=True,
             half_conversion=Cost(any=3),
             measured_contention={frozenset({"issue", "ports"}): 0.12, frozenset({"chain", "ports"}): 0.09,
                                  frozenset({"loads", "ports"}): 0.11})
# Measured on Emerald Rapids, after all plans were chosen. Its clock is a tenth slower where it multiplies floats in
# 512-bit vectors.
_GOLDEN_COVE = Core("Golden Cove", vector_ports=3, issued=6, vectors_issued=6, adds_apart=True, chooses=False,
                    steady_clock=False,
                    measured_contention={frozenset({"issue", "ports"}): 0.06, frozenset({"chain", "ports"}): 0.15,
                                         frozenset({"loads", "ports"}): 0.02})
# Likewise. Its clock is 2.4 GHz where it multiplies in 512-bit vectors, 2.7 where it only adds or shuffles them. What
# widens bytes or halves from memory was measured to take two of its four places.
_CASCADE_LAKE = Core("Cascade Lake", vector_ports=3, chooses=False, steady_clock=False, issues_shuffles_as_one=False,
                     measured_contention={frozenset({"issue", "ports"}): 0.03, frozenset({"chain", "ports"}): 0.03,
                                          frozenset({"loads", "ports"}): 0.10})
_NARROW = Core("Intel", 3), _ZEN3, _ZEN4, _ZEN5, _GOLDEN_COVE, _CASCADE_LAKE
_WIDE = (Core("Intel", 2), replace(_ZEN4, passes=2, half_widening=_ZEN4.half_conversion), _ZEN5,
         replace(_GOLDEN_COVE, vector_ports=2, half_widening=_GOLDEN_COVE.half_conversion),
         replace(_CASCADE_LAKE, vector_ports=2))


def _cycles(intel: int, zen: int, zen5: int, golden_cove: int) -> dict[str, int]:
    """Those of Zen 3 and Zen 4 are the same, and of all of Intel's before Golden Cove."""
    return dict(zip((core.name for core in _NARROW), (intel, zen, zen, zen5, golden_cove, intel)))


_ADD = _cycles(1, 1, 2, 1)  # of integers


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
    vector_bytes=16, cores=_NARROW, int_vector="__m128i",
    deinterleave={32: (_shuffle_ps("_mm", "si128", "0x88"), _shuffle_ps("_mm", "si128", "0xDD")),
                  64: ("_mm_unpacklo_epi64({a}, {b})", "_mm_unpackhi_epi64({a}, {b})")},
    deinterleave_shuffles=1,
    broadcast={32: "_mm_set1_epi32(load_s32({p}))", 64: "_mm_set1_epi64x(load_s64({p}))",
               128: "load_128<16>({p})"},
    broadcast_shuffles=1, copies_operands=True, unrolls_steps=True)

AVX2_FMA = Isa(
    name="avx2_fma", arch="x86_64", includes=("arch/x86_64/avx2_fma/idioms.h",), registers=16,
    vector_bytes=32, cores=_NARROW, int_vector="__m256i",
    # Shuffles work in 128-bit halves: quarters 0 2 1 3 put the halves' results in order.
    deinterleave={32: tuple(f"_mm256_permute4x64_epi64({_shuffle_ps('_mm256', 'si256', c)}, 0xD8)"
                            for c in ("0x88", "0xDD")),
                  64: tuple(f"_mm256_permute4x64_epi64(_mm256_unpack{half}_epi64({{a}}, {{b}}), 0xD8)"
                            for half in ("lo", "hi"))},
    deinterleave_shuffles=2,
    broadcast={32: "_mm256_set1_epi32(load_s32({p}))", 64: "_mm256_set1_epi64x(load_s64({p}))",
               128: "_mm256_broadcastsi128_si256(load_128<16>({p}))", 256: "load_256<32>({p})"},
    unrolls_steps=True, folds_loads=True)

AVX_VNNI = Isa(**{**AVX2_FMA.__dict__, "name": "avx_vnni"})

AVX512_BASE = Isa(
    name="avx512_base", arch="x86_64", includes=("arch/x86_64/avx512_base/idioms.h",), registers=32,
    vector_bytes=64, cores=_WIDE, int_vector="__m512i",
    deinterleave={32: (_permute2_512("epi32", 0, 16), _permute2_512("epi32", 1, 16)),
                  64: (_permute2_512("epi64", 0, 8), _permute2_512("epi64", 1, 8))},
    deinterleave_shuffles=1,
    broadcast={32: "_mm512_set1_epi32(load_s32({p}))", 64: "_mm512_set1_epi64(load_s64({p}))",
               128: "_mm512_broadcast_i32x4(load_128<16>({p}))",
               256: "_mm512_broadcast_i64x4(load_256<32>({p}))"},
    unrolls_steps=True, folds_loads=True, decodes_ahead=True)

AVX512_VNNI = Isa(**{**AVX512_BASE.__dict__, "name": "avx512_vnni",
                     "includes": ("arch/x86_64/avx512_vnni/idioms.h",)})
AVX512_BF16 = Isa(**{**AVX512_BASE.__dict__, "name": "avx512_bf16"})
AVX512_FP16 = Isa(**{**AVX512_BASE.__dict__, "name": "avx512_fp16",
                     "includes": ("arch/x86_64/avx512_fp16/idioms.h",),
                     "deinterleave": {16: ("even_lanes({a}, {b})", "odd_lanes({a}, {b})")},
                     "deinterleave_shuffles": 2,
                     "broadcast": {16: "broadcast_f16({p})"}, "broadcast_shuffles": 1})

# Decoding on SSE2 takes longer than its instructions, as they overwrite operands and their constants take registers.
# Of 73 tiles up to here staging made 55 faster on Zen 4, by up to a third, and none slower by more than 3 %; beyond
# it nearly all lost.
_SOFTWARE_STAGING = {"staging_worth": 1.035}

ISAS = {isa.name: isa for isa in (SSE2, AVX2_FMA, AVX_VNNI, AVX512_BASE, AVX512_VNNI, AVX512_BF16,
                                  AVX512_FP16)}


def expand(isa: Isa, lane_bits: int, units: int, padded: int) -> str:
    lanes = isa.lanes(lane_bits)
    source = [lane // padded * units + min(lane % padded, units - 1) for lane in range(lanes)]
    if lane_bits == 16:  # to expand these takes VBMI2
        return f"_mm512_permutexvar_epi16(_mm512_set_epi16({', '.join(map(str, source[::-1]))}), {{x}})"
    if isa.vector_bytes == 64:
        mask = sum(1 << lane for lane in range(lanes) if lane % padded < units)
        return f"_mm512_maskz_expand_epi{lane_bits}({mask:#x}, {{x}})"
    assert isa.vector_bytes == 32 and lane_bits == 32, "narrower vectors hold whole padded rows"
    return f"_mm256_permutevar8x32_epi32({{x}}, {_setr('_mm256', 'epi32', source)})"


def int_zero(isa: Isa) -> str:
    bits = isa.vector_bytes * 8
    return f"_mm{'' if bits == 128 else bits}_setzero_si{bits}()"


def set1(isa: Isa, value: str) -> str:
    bits = isa.vector_bytes * 8
    return f"_mm{'' if bits == 128 else bits}_set1_epi32({value})"


class _Names:
    """Spellings that depend only on the register width."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
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
            # Left to itself, Clang takes any register for the half that the shift drops, and waits for it.
            ("epi8", "epi16"): (f"_mm_srai_epi16(in_order({low8}({{x}}, {{x}})), 8)",),
            ("epu8", "epi16"): (f"{low8}({{x}}, {zero})",),
            ("epi8", "epi32"): (f"{low8}({{x}}, {{x}})", f"_mm_srai_epi32({low16}({{x}}, {{x}}), 24)"),
            ("epu8", "epi32"): (f"{low8}({{x}}, {zero})", f"{low16}({{x}}, {zero})"),
            ("epu16", "epi32"): (f"{low16}({{x}}, {zero})",),
            ("epi16", "epi32"): (f"_mm_srai_epi32({low16}({{x}}, {{x}}), 16)",),
        }[source, to]

    def widen_cost(self, steps: int = 1) -> Cost:
        return Cost(shuffle=steps) if self.bits > 128 else Cost(shift=1, shuffle=steps)

    def set1(self, value: str) -> str:
        return f"{self.mm}_set1_epi32({value})"

    def xor(self, bits: str) -> str:
        return f"{self.mm}_xor_{self.si}({{x}}, {self.set1(f'static_cast<int>({bits})')})"

    def spread(self, shift: int, mask: str) -> str:
        """x | x << shift, masked: takes a value apart into two fields of the lane."""
        return (f"{self.mm}_and_{self.si}({self.mm}_or_{self.si}({{x}}, "
                f"{self.mm}_slli_epi32({{x}}, {shift})), {self.set1(mask)})")

    def sign_extend_nibbles(self, lane: str, bits: str) -> str:
        return (f"{self.mm}_sub_{lane}({self.mm}_xor_{self.si}({{x}}, {self.set1(bits)}), "
                f"{self.set1(bits)})")

    def vnni_dot(self, instruction: str, infix: str, a: str, b: str) -> dict:
        """With the 16 registers of AVX-VNNI, compilers rename the accumulators of lone dots too. The second operand may
        be broadcast from memory, with EVEX."""
        embeds = self.bits == 512 and (b == "{a}" or instruction == "dpwssd")
        return {"dot": f"{self.mm}_{instruction}{infix}_epi32({{acc}}, {a}, {b})",
                "row_dot": f"{instruction}_row({{acc}}, {{b}}, {{p}})" if embeds else None,
                "dot_cost": Cost(multiply=1), "latency": _cycles(5, 4, 4, 5),
                "keep_order": "always" if infix else "several"}

    def s16_dot(self, has_vnni: bool, infix: str) -> dict:
        if has_vnni:
            return self.vnni_dot("dpwssd", infix, "{a}", "{b}")
        common = {"dot_cost": Cost(multiply=1, any=1), "latency": _ADD, "registers": 1}
        if self.bits == 128:
            return {"dot": "multiply_add({acc}, {a}, {b})", **common}
        product = f"{self.mm}_madd_epi16({{a}}, {{b}})"
        return {"dot": f"{self.mm}_add_epi32({{acc}}, {product})",
                "product": product if self.bits == 512 else None, "keep_order": "several", **common}

    def row_sums(self, offset: int, has_vnni: bool, infix: str) -> dict:
        """Sums of s8, times what the columns were decoded to be too large."""
        byte = f"{self.mm}_set1_epi8({offset if offset < 128 else offset - 256})"
        if has_vnni:
            sums = f"{self.mm}_dpbusd{infix}_epi32({{sums}}, {byte}, {{x}})"
            cost = Cost(1)
        else:
            sums = (f"{self.mm}_add_epi32({{sums}}, {self.mm}_madd_epi16({self.mm}_maddubs_epi16("
                    f"{byte}, {{x}}), {self.mm}_set1_epi16(1)))")
            cost = Cost(2, 1)
        return {"rhs_offset": offset, "row_sums": sums, "row_sums_cost": cost,
                "subtract": f"{self.mm}_sub_epi32({{a}}, {{b}})"}

    def permute_bytes(self, order: list[int]) -> str:
        """Bytes order[i] of each 16 to place i."""
        control = _setr("_mm", "epi8", order)
        if self.bits == 256:
            control = f"_mm256_broadcastsi128_si256({control})"
        if self.bits == 512:
            control = f"_mm512_broadcast_i32x4({control})"
        return f"{self.mm}_shuffle_epi8({{x}}, {control})"

    def bytes_of_lane(self, *order: int) -> str:
        """Of each 32 bits, likewise; a zero for -1."""
        return self.permute_bytes([-1 if byte < 0 else lane + byte for lane in range(0, 16, 4) for byte in order])

    def reorder(self, k_order: tuple[tuple[int, ...], ...], element_bytes: int) -> str:
        """Units of which whole ones fill 16 bytes: their elements part by part."""
        elements = [k for part in k_order for k in part]
        unit = [k * element_bytes + b for k in elements for b in range(element_bytes)]
        return self.permute_bytes([first + b for first in range(0, 16, len(unit)) for b in unit])


@dataclass(frozen=True)
class _Element:
    """How an element type becomes k elements of a 32-bit lane."""

    unit_bytes: int
    as_lhs: Steps | None
    as_rhs: Steps
    cost: Cost
    offset: int = 0  # as RHS
    registers: int = 0  # that decoding needs as RHS, beside the result's


def _integer_elements(n: _Names, k: int) -> dict[str, _Element]:
    """s16 each for k <= 2, bytes for k = 4, there unsigned as RHS. With k = 1 the lane's upper s16 is
    multiplied too, so one side has to have zero there: the LHS."""
    if k == 4:
        nibbles = (*n.widen("epu16", "epi32"), n.spread(8, "0x00FF00FF"), n.spread(4, "0x0F0F0F0F"),
                   n.xor("0x08080808"))
        return {"s8": _Element(4, None, (n.xor("0x80808080"),), Cost(any=1), 128),
                "u8": _Element(4, None, (), Cost()),
                "s4": _Element(2, None, nibbles, n.widen_cost() + Cost(shift=2, any=5), 8, 2)}
    if k == 2:
        zero = int(n.bits == 128)  # with which bytes are widened
        nibble_pair = (*n.widen("epu8", "epi32"), n.spread(12, "0x000F000F"))
        s8, u8 = n.widen("epi8", "epi16"), n.widen("epu8", "epi16")
        pair_cost = n.widen_cost(2) + Cost(shift=1, any=2)
        return {
            "s16": _Element(4, None, (), Cost()),
            "s8": _Element(2, s8, s8, n.widen_cost()),
            "u8": _Element(2, u8, u8, n.widen_cost()),
            "u4": _Element(1, None, nibble_pair, pair_cost, registers=2 + zero),
            "s4": _Element(1, None, (*nibble_pair, n.sign_extend_nibbles("epi16", "0x00080008")),
                           pair_cost + Cost(any=2), registers=4 + zero),
        }
    low_half = f"{n.mm}_and_{n.si}({{x}}, {n.set1('0xFFFF')})"
    s16, s8, u8 = (n.widen("epu16", "epi32"), n.widen("epi8", "epi32"), n.widen("epu8", "epi32"))
    return {"s16": _Element(2, s16, s16, n.widen_cost()),
            "s8": _Element(1, (*s8, low_half), s8, n.widen_cost(2)),
            "u8": _Element(1, u8, u8, n.widen_cost(2))}


# Of bytes by nibbles. On avx512_base, and with fewer rows on avx512_vnni, that was slower.
_LEAST_NIBBLE_ROWS_BESIDE_DOTS = {"avx2_fma": 4, "avx_vnni": 6, "avx512_vnni": 14}
# Of what is widened into one vector. Of f16, bf16 and bytes by bytes it was measured; in 512 bits that was slower.
_LEAST_WIDENED_ROWS_BESIDE_DOTS = {"avx2_fma": 6}
# Staged once for several tiles: fewer rows take RHS panels abreast. Rows of s16 for columns of nibbles were no faster,
# and on other levels nobody measured it.
_LEAST_ROWS_STAGED_ONCE = {"avx2_fma": 4}


def _nibble_primitives(isa: Isa, has_vnni: bool, infix: str, common: dict) -> list[Primitive]:
    """Eight k a lane, whose 32 bits are the nibbles of a column. An s4 + 8 is a u4, got by flipping
    its sign bit; 8 times the row's sum is subtracted in the end. SSE2 brings the sign along instead.

    The nibbles are not brought in order; the row's elements are, once for all columns. As pairs of
    s16, part p, after a shift by 4 * p:

        column: k = p | k = p + 4 << 16        row: alike

    As bytes, the even and the odd nibbles:

        column: k = 0 2 4 6, k = 1 3 5 7       row: alike

    Where an op decodes them once for several tiles, the nibbles are brought in order, which takes more instructions, and
    rows are used as they lie.
    """
    n = _Names(isa)
    pairs = tuple((p, p + 4) for p in range(4))
    quads = ((0, 2, 4, 6), (1, 3, 5, 7))
    flipped = n.xor("0x88888888")

    def masked(x: str, mask: str) -> str:
        return f"{n.mm}_and_{n.si}({x}, {n.set1(mask)})"

    as_pairs = (*((masked(f"{n.mm}_srli_epi32({{x}}, {4 * p})" if p else "{x}", "0x000F000F"),)
                  for p in range(3)), (f"{n.mm}_srli_epi16({{x}}, 12)",))
    swap16 = ("_mm_unpacklo_epi16({x}, _mm_srli_si128({x}, 8))" if isa.vector_bytes == 16 else
              n.reorder(pairs, 2))
    dot_pairs = n.s16_dot(has_vnni, infix)
    dot_pairs["registers"] = dot_pairs.get("registers", 0) + 1  # the mask; else GCC's, for sums it renames
    if isa.vector_bytes > 16:
        # Byte p of the column, times 256, in both halves of its lane. Of 256 times it, and of 16 times it, the upper
        # halves are all of it, and its high nibble.
        dot_pairs["decode_in_order"] = tuple(
            (n.bytes_of_lane(-1, p, -1, p), f"{n.mm}_mulhi_epu16({{x}}, {n.set1('0x00100100')})",
             masked("{x}", "0x000F000F")) for p in range(4))
    found = [Primitive(
        isa, TYPES["s16u4s32"], pairs, lhs_unit_bytes=16, rhs_unit_bytes=4, decode=as_pairs,
        decode_cost=Cost(shift=3, any=3), stage_lhs=(swap16,), stage_lhs_cost=Cost(shuffle=2),
        **dot_pairs, **common)]

    s8s4 = {"lhs_unit_bytes": 8, "rhs_unit_bytes": 4, **common}
    if isa.vector_bytes == 16:  # no VPMADDUBSW
        def signed_pair(p: int) -> Steps:  # shifts bring the sign along, and leave nothing to subtract
            x = f"_mm_slli_epi16({{x}}, {12 - 4 * p})" if p < 3 else "{x}"
            return (f"_mm_srai_epi16({x}, 12)",)

        return found + [Primitive(
            isa, TYPES["s8s4s32"], pairs, decode=tuple(map(signed_pair, range(4))), decode_cost=Cost(shift=7),
            stage_lhs=(*n.widen("epi8", "epi16"), swap16), stage_lhs_cost=Cost(shift=1, shuffle=3),
            **n.s16_dot(has_vnni, infix), **s8s4)]

    s8s4 |= n.row_sums(8, has_vnni, infix)
    s8s4["decode_in_order"] = tuple(
        (flipped, n.bytes_of_lane(p, -1, p + 1, -1), n.spread(4, "0x0F0F0F0F")) for p in (0, 2))
    if isa.vector_bytes == 64:  # (x ^ 8) & 15 in one instruction
        def nibbles(x: str) -> Steps:
            return (f"_mm512_ternarylogic_epi32({x}, {n.set1('0x08080808')}, "
                    f"{n.set1('0x0F0F0F0F')}, 0x28)",)
        as_quads = (nibbles("{x}"), nibbles("_mm512_srli_epi32({x}, 4)"))
        decode_cost = Cost(shift=1, any=2)
    else:
        as_quads = ((flipped, masked("{x}", "0x0F0F0F0F")),
                    (flipped, masked(f"{n.mm}_srli_epi32({{x}}, 4)", "0x0F0F0F0F")))
        decode_cost = Cost(shift=1, any=3)
    if has_vnni:
        dot = {**n.vnni_dot("dpbusd", infix, "{b}", "{a}"), "registers": 2, "decode_constants": 2}  # masks
        # The high nibbles stay where they are, 16 times as much, if there are sums for them. Not as one VPTERNLOGD each,
        # whose copy of what it overwrites takes as long as another instruction on Zen 4.
        dot |= {"scaled_decode": ((flipped, masked("{x}", "0x0F0F0F0F")),
                                  (flipped, f"{n.mm}_andnot_{n.si}({n.set1('0x0F0F0F0F')}, {{x}})")),
                "scaled_decode_cost": Cost(any=3), "scaled_bits": (0, 4),
                "scale_back": f"{n.mm}_srai_epi32({{sum}}, {{bits}})"}
    else:
        # Sums of four products of u4 by s8 are s16, so the multiplication by ones can wait for both.
        halves = [f"{n.mm}_maddubs_epi16({{b{p}}}, {{a{p}}})" for p in (0, 1)]
        dot = {"dot": f"{n.mm}_add_epi32({{acc}}, {n.mm}_madd_epi16("
                      f"{n.mm}_add_epi16({halves[0]}, {halves[1]}), {n.mm}_set1_epi16(1)))",
               "dot_cost": Cost(multiply=3, any=2), "latency": _ADD, "registers": 3}
    return found + [Primitive(
        isa, TYPES["s8s4s32"], quads, decode=as_quads, decode_cost=decode_cost,
        stage_lhs=(n.reorder(quads, 1),), stage_lhs_cost=Cost(shuffle=1),
        least_rows_beside_dots=_LEAST_NIBBLE_ROWS_BESIDE_DOTS.get(isa.name, 0),
        least_rows_staged_once=_LEAST_ROWS_STAGED_ONCE.get(isa.name, 0), **dot, **s8s4)]


def _integer_primitives(isa: Isa) -> list[Primitive]:
    n = _Names(isa)
    has_vnni = isa.name.endswith("vnni")
    infix = "_avx" if isa.name == "avx_vnni" else ""
    common = {"lane_bits": 32, "acc_vector": isa.int_vector, "operand_vector": isa.int_vector,
              "operand": "{x}", "zero": f"{n.mm}_setzero_{n.si}()", "load_out": "{load}",
              "store_out": "{acc}", "numerics": "exact", "add": f"{n.mm}_add_epi32({{a}}, {{b}})",
              **(_SOFTWARE_STAGING if isa is SSE2 else {})}
    found = _nibble_primitives(isa, has_vnni, infix, common)
    for k in (4, 2, 1) if has_vnni else (2, 1):
        elements = _integer_elements(n, k)
        for name in ("s8s8s32", "u8s8s32", "s8s4s32", "s16s16s32", "s16u4s32", "s16s8s32"):
            kind = TYPES[name]
            if kind.lhs not in elements or kind.rhs not in elements:
                continue
            lhs, rhs = elements[kind.lhs], elements[kind.rhs]
            dot = n.s16_dot(has_vnni, infix)
            if k == 4:  # one operand of the dot is unsigned
                if kind.lhs == "u8":
                    dot = n.vnni_dot("dpbusd", infix, "{a}", "{b}")
                    rhs = _Element(rhs.unit_bytes, None, (), Cost())
                else:
                    dot = {**n.vnni_dot("dpbusd", infix, "{b}", "{a}"), **n.row_sums(rhs.offset, True, infix),
                           "registers": 1, "decode_constants": 1}  # sign bits
                    if isa is AVX512_VNNI and kind.name == "s8s8s32":
                        dot |= {"block_row_sums": "sum_rows<{rows}>({sums}, {p})",
                                "panel_row_sums": "sum_panel<{rows}>({panel}, {steps})",
                                "registers": 2}  # sign bits, sums
            elif isa is SSE2 and kind.lhs == "u8":
                dot["registers"] += 1  # a zero, with which bytes are widened
            found.append(Primitive(
                isa, kind, (tuple(range(k)),),
                lhs_unit_bytes=lhs.unit_bytes, rhs_unit_bytes=rhs.unit_bytes,
                decode=(rhs.as_rhs,), decode_cost=rhs.cost, decode_registers=rhs.registers,
                decodes_side_by_side=rhs.registers > 0,
                stage_lhs=lhs.as_lhs, stage_lhs_cost=lhs.cost,
                least_rows_beside_dots=_LEAST_WIDENED_ROWS_BESIDE_DOTS.get(isa.name, 0),
                least_rows_staged_once=_LEAST_ROWS_STAGED_ONCE.get(isa.name, 0) if rhs.unit_bytes >= k else 0,
                **dot, **common))
    return found


# fma_rounded_to_<name> of the levels' idioms.h, by bytes of a vector: cost; cycles through the accumulator on cores
# that _ROUNDING_CYCLES lacks.
_ROUNDING = {
    ("f16", 16): (Cost(4, 10, add=10, renamed=8), 40),
    ("bf16", 16): (Cost(30, 20, 12), 39),
    ("f16", 32): (Cost(4, 5, add=4, convert=2), 26),
    ("bf16", 32): (Cost(2, 4), 9),
    ("f16", 64): (Cost(2, 2, convert=2), 23),
    ("bf16", 64): (Cost(2, 4), 10),
}
# What bench_overlap prints of them, as no core finds ports for all instructions at once.
_ROUNDING_CYCLES = {
    "Zen 3": {("f16", 16): (33.0, 18.0, 10.6, 9.5, 9.3), ("bf16", 16): (34.2, 20.0, 15.5, 15.3, 15.3),
              ("f16", 32): (28.0, 15.0, 8.6, 6.0, 6.3), ("bf16", 32): (10.0, 5.0, 2.7, 2.0, 1.8)},
    "Zen 4": {("f16", 16): (33.0, 17.6, 10.4, 9.0, 9.0), ("bf16", 16): (30.8, 19.0, 15.3, 15.1, 15.0),
              ("f16", 32): (27.0, 13.6, 7.8, 5.7, 5.8), ("bf16", 32): (8.0, 4.1, 2.5, 1.8, 1.7),
              ("f16", 64): (23.0, 12.4, 6.5, 4.9, 4.7), ("bf16", 64): (8.2, 5.4, 4.0, 3.3, 3.2)},
    "Zen 5": {("f16", 16): (38.7, 20.9, 12.1, 9.2, 9.1), ("bf16", 16): (40.2, 22.6, 15.0, 14.8, 14.8),
              ("f16", 32): (32.5, 17.3, 9.6, 6.0, 6.0), ("bf16", 32): (11.9, 6.0, 3.0, 1.9, 1.8),
              ("f16", 64): (25.0, 12.5, 6.4, 3.5, 2.6), ("bf16", 64): (12.0, 6.0, 3.2, 2.0, 1.6)},
    "Golden Cove": {("f16", 16): (40.4, 21.5, 12.4, 9.1, 9.0), ("bf16", 16): (40.6, 24.7, 18.4, 17.7, 17.6),
                    ("f16", 32): (39.1, 20.2, 11.0, 6.8, 6.5), ("bf16", 32): (10.1, 5.4, 3.1, 2.2, 2.1),
                    ("f16", 64): (26.2, 14.0, 7.4, 4.4, 4.0), ("bf16", 64): (11.4, 6.1, 3.8, 3.1, 3.0)},
    "Cascade Lake": {("f16", 16): (48.3, 25.5, 13.7, 13.2, 13.0), ("bf16", 16): (43.1, 26.2, 21.8, 21.5, 21.7),
                     ("f16", 32): (37.3, 19.9, 10.7, 8.1, 8.4), ("bf16", 32): (10.0, 5.2, 3.0, 2.2, 2.2),
                     ("f16", 64): (25.5, 13.2, 6.9, 4.3, 4.2), ("bf16", 64): (10.1, 5.4, 3.4, 3.3, 3.4)},
}
# Likewise, cycles of SSE2's f16_to_f32.
_WIDENING = {"Zen 3": 2.55, "Zen 4": 2.4, "Zen 5": 2.0, "Golden Cove": 2.7, "Cascade Lake": 2.8}
# Constants, and what compilers keep in flight.
_ROUNDING_REGISTERS = {("f16", 16): 10, ("bf16", 16): 12, ("f16", 32): 6, ("bf16", 32): 8,
                       ("f16", 64): 4, ("bf16", 64): 15}


_BESIDE_FLOATS = "broadcast_beside_floats({p})"


def _float_primitives(isa: Isa) -> list[Primitive]:
    n = _Names(isa)
    has_fma = isa is not SSE2

    def as_ps(x: str) -> str:
        return f"{n.mm}_cast{n.si}_ps({x})"

    def as_int(x: str) -> str:
        return f"{n.mm}_castps_{n.si}({x})"

    def multiply_add(lane: str, parts: int = 1) -> dict:
        if has_fma:
            acc = "{acc}"
            if isa is AVX2_FMA:  # whose registers are scarce: of two sums in a row also for GCC
                acc = "in_order({acc})" if parts > 1 else "in_place({acc})"
            return {"dot": f"{n.mm}_fmadd_{lane}({{a}}, {{b}}, {acc})", "dot_cost": Cost(1),
                    "row_dot": "fmadd_row({acc}, {b}, {p})" if isa.vector_bytes == 64 else None, "latency": 4}
        return {"dot": "multiply_add({acc}, {a}, {b})",
                "dot_cost": Cost(multiply=1, add=1), "latency": _cycles(4, 3, 2, 2), "registers": 1}

    acc = {"zero": f"{n.mm}_setzero_ps()", "acc_vector": n.v, "operand_vector": n.v,
           "operand": as_ps("{x}"), "lane_bits": 32, "acc_to_int": as_int("{x}"),
           "int_to_acc": as_ps("{x}")}
    out_f32 = {"load_out": as_ps("{load}"), "store_out": as_int("{acc}")}
    chain = "fma_chain" if has_fma else "mul_add_chain"
    one = ((0,),)
    found = [
        Primitive(isa, TYPES["f32f32f32"], one, numerics=chain, lhs_unit_bytes=4, rhs_unit_bytes=4,
                  decode=((),), **multiply_add("ps"), **acc, **out_f32),
        Primitive(isa, TYPES["f64f64f64"], one, 64, n.v + "d", n.v + "d",
                  f"{n.mm}_cast{n.si}_pd({{x}})", f"{n.mm}_setzero_pd()",
                  load_out=f"{n.mm}_cast{n.si}_pd({{load}})", store_out=f"{n.mm}_castpd_{n.si}({{acc}})",
                  numerics=chain, lhs_unit_bytes=8, rhs_unit_bytes=8, decode=((),),
                  **multiply_add("pd")),
    ]
    widen_f16: Steps = (as_int("f16_to_f32({x})"),)
    widen_bf16: Steps = (as_int("bf16_to_f32({x})"),)
    f16_cost = Cost(widen=1) if has_fma else Cost(2, 5, 1, renamed=2)
    f16_registers = 0 if has_fma else 7  # constants, and the magnitude beside the whole
    bf16_cost = {16: Cost(shuffle=1, renamed=1), 32: Cost(shuffle=1), 64: Cost(shift=1, shuffle=1)}[isa.vector_bytes]
    # Two bf16 of a column are the lower and the upper half of a lane.
    high_half = (f"{n.mm}_slli_epi32({{x}}, 16)",)
    both_halves = (high_half, (f"{n.mm}_and_{n.si}({{x}}, {n.set1('static_cast<int>(0xFFFF0000)')})",))
    forms = [
        ("f16", {"k_order": one, "lhs_unit_bytes": 2, "rhs_unit_bytes": 2, "decode": (widen_f16,),
                 "decode_cost": f16_cost, "decode_registers": f16_registers,
                 "stage_lhs": widen_f16, "stage_lhs_cost": f16_cost,
                 "least_rows_beside_dots": _LEAST_WIDENED_ROWS_BESIDE_DOTS.get(isa.name, 0),
                 "decode_cycles": {} if has_fma else _WIDENING}),
        ("bf16", {"k_order": one, "lhs_unit_bytes": 2, "rhs_unit_bytes": 2, "decode": (widen_bf16,),
                  "decode_cost": bf16_cost, "decode_registers": 1 if isa is AVX2_FMA else 0,  # the order of its bytes
                  "stage_lhs": widen_bf16, "stage_lhs_cost": bf16_cost,
                  "least_rows_beside_dots": _LEAST_WIDENED_ROWS_BESIDE_DOTS.get(isa.name, 0)}),
        ("bf16", {"k_order": ((0,), (1,)), "lhs_unit_bytes": 4, "rhs_unit_bytes": 4,
                  "decode": both_halves, "decode_cost": Cost(shift=1, any=1),
                  "decode_registers": 0 if has_fma else 2,
                  "decode_for_rows": (high_half, ("upper_halves({x})",)) if isa is AVX2_FMA else (),
                  "stage_lhs": widen_bf16, "stage_lhs_cost": bf16_cost,
                  "store_parts": (("store_low_halves({to}, {x})", "store_high_halves({to}, {x})")
                                  if isa.vector_bytes == 64 else ()),
                  # 13 rows and more were measured, of 9 vectors are not filled.
                  "least_rows_beside_dots": 12 if isa.vector_bytes == 64 else 4}),
    ]
    for name, form in forms:
        common = {**acc, **form, "broadcast": _BESIDE_FLOATS if isa.vector_bytes == 64 else None,
                  "least_rows_staged_once": _LEAST_ROWS_STAGED_ONCE.get(isa.name, 0),
                  **(_SOFTWARE_STAGING if isa is SSE2 else {})}
        out_half = {"load_out": f"{name}_to_f32({{load}})", "store_out": f"f32_to_{name}({{acc}})"}
        cost, latency = _ROUNDING[name, isa.vector_bytes]
        # Products of two f16 are exact in f32, so mul + add is the FMA chain; those of two bf16 can
        # underflow.
        to_f32 = "fma_chain" if has_fma or name == "f16" else "mul_add_chain"
        rounded = {"dot": f"fma_rounded_to_{name}({{acc}}, {{a}}, {{b}})"}
        if has_fma and name == "bf16":
            rounded = {"dot": f"{n.mm}_fmadd_ps({{a}}, {{b}}, {{acc}})", "round_dot": "round_to_bf16({acc})"}
        if isa is AVX512_BASE and name == "f16":  # conversions share ports with the rounding's: 5 to 7 % on Zen 4
            rounded |= {"staging_worth": 1.06}
        found += [
            Primitive(isa, TYPES[f"{name}{name}f32"], numerics=to_f32, **common, **out_f32,
                      **multiply_add("ps", len(form["k_order"]))),
            Primitive(isa, TYPES[f"{name}{name}{name}"], numerics="f32acc", **common, **out_half,
                      **multiply_add("ps", len(form["k_order"]))),
            Primitive(isa, TYPES[f"{name}{name}{name}"], numerics="round_each_step", **common,
                      **out_half, **rounded, dot_cost=cost, latency=latency,
                      dot_cycles={core: cycles[name, isa.vector_bytes] for core, cycles in _ROUNDING_CYCLES.items()
                                  if (name, isa.vector_bytes) in cycles},
                      registers=_ROUNDING_REGISTERS[name, isa.vector_bytes]),
        ]
    return found


def _bf16_dot_primitives(isa: Isa) -> list[Primitive]:
    common = {"k_order": ((0, 1),), "lane_bits": 32, "acc_vector": "__m512",
              "operand_vector": "__m512bh", "operand": "(__m512bh)({x})",
              "zero": "_mm512_setzero_ps()", "dot": "_mm512_dpbf16_ps({acc}, {a}, {b})",
              "dot_cost": Cost(1), "latency": 6, "lhs_unit_bytes": 4, "rhs_unit_bytes": 4,
              "dot_cycles": {"Golden Cove": (8, 4, 2, 2, 2)},  # by a loop of VDPBF16PS in registers
              "decode": ((),), "add": "_mm512_add_ps({a}, {b})", "broadcast": _BESIDE_FLOATS,
              "acc_to_int": "_mm512_castps_si512({x})", "int_to_acc": "_mm512_castsi512_ps({x})"}
    return [
        Primitive(isa, TYPES["bf16bf16f32"], load_out="_mm512_castsi512_ps({load})",
                  store_out="_mm512_castps_si512({acc})", numerics="bf16_dot", **common),
        Primitive(isa, TYPES["bf16bf16bf16"], load_out="bf16_to_f32({load})",
                  store_out="f32_to_bf16({acc})", numerics="bf16_dot_f32acc", **common),
    ]


def _f16_primitives(isa: Isa) -> list[Primitive]:
    """FMAs of f16, which round to f16 and keep subnormals, whatever MXCSR says. For sums in f32 the
    level adds nothing: its conversion that broadcasts costs a shuffle, where staged rows cost a load."""
    return [Primitive(
        isa, TYPES["f16f16f16"], ((0,),), 16, "__m512h", "__m512h", "_mm512_castsi512_ph({x})",
        "_mm512_setzero_ph()", "_mm512_fmadd_ph({a}, {b}, {acc})", Cost(1), latency=5,
        load_out="_mm512_castsi512_ph({load})", store_out="_mm512_castph_si512({acc})",
        numerics="round_each_step", lhs_unit_bytes=2, rhs_unit_bytes=2, decode=((),),
        keep_order="several", embeds_broadcast=True)]


PRIMITIVES: dict[str, list[Primitive]] = {
    isa.name: (_bf16_dot_primitives(isa) if isa is AVX512_BF16 else
               _f16_primitives(isa) if isa is AVX512_FP16 else
               _integer_primitives(isa) if isa in (AVX_VNNI, AVX512_VNNI) else
               _float_primitives(isa) + _integer_primitives(isa))
    for isa in ISAS.values()
}
# Tiles of AMX are of whole registers, all of them by hand.
PRIMITIVES |= {"amx_int8": [], "amx_bf16": []}
