// Where the operands of an op lie in memory: overflow, split bytes, overlap.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/internal.h"

namespace uk {
namespace {

uk_index_t magnitude(uk_index_t stride) { return stride < 0 ? -stride : stride; }

struct Dimension {
  uk_index_t size, stride;
};

// The dimensions by stride, so that the inner one nests inside the outer one. A dimension with one
// entry has no stride.
struct Nested {
  Dimension outer, inner;
};

Nested nested(const Layout& layout) {
  const Dimension dim0 = {layout.size0, layout.size0 > 1 ? layout.stride0 : 0};
  const Dimension dim1 = {layout.size1, layout.size1 > 1 ? layout.stride1 : 0};
  return magnitude(dim0.stride) < magnitude(dim1.stride) ? Nested{dim1, dim0} : Nested{dim0, dim1};
}

bool is_empty(const Layout& layout) {
  return layout.size0 == 0 || layout.size1 == 0 || layout.run == 0;
}

// Without the top byte on Arm, whose cores ignore it: allocators put a tag there.
uk_index_t untagged_address(const void* pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
#if defined(__aarch64__)
  address = address << 8 >> 8;
#endif
  return static_cast<uk_index_t>(address);
}

}  // namespace

uk_status_t rows_of(const Layout& layout, Rows* rows) {
  *rows = {0, 0, 0, 0};
  if (is_empty(layout)) return UK_STATUS_OK;
  // INT64_MIN has no magnitude; a stride of one entry is never used.
  if ((layout.size0 > 1 && layout.stride0 == INT64_MIN) ||
      (layout.size1 > 1 && layout.stride1 == INT64_MIN)) {
    return UK_STATUS_OVERFLOW;
  }
  const auto [outer, inner] = nested(layout);
  if (layout.bits < 8) {
    // The run itself may be odd: the op decides whether that is legal for it.
    const uk_index_t splits = layout.offset | outer.stride | inner.stride;
    if ((splits & 1) != 0) return UK_STATUS_SPLIT_BYTE;
  }
  Checked c;
  const uk_index_t outer_reach = c.mul(outer.size - 1, outer.stride);
  const uk_index_t inner_reach = c.mul(inner.size - 1, inner.stride);
  const uk_index_t start =
      c.add(layout.offset, c.add(smaller(outer_reach, 0), smaller(inner_reach, 0)));
  const uk_index_t length = c.add(c.mul(inner.size - 1, magnitude(inner.stride)), layout.run);
  const uk_index_t first_bits = c.mul(start, layout.bits);
  const uk_index_t length_bits = c.mul(length, layout.bits);
  const uk_index_t stride_bits = c.mul(magnitude(outer.stride), layout.bits);
  // Ops count in bits from the base, and from one row to another.
  const uk_index_t span = c.add(c.mul(outer.size - 1, magnitude(outer.stride)), length);
  c.add(first_bits, c.mul(span, layout.bits));
  if (c.overflowed()) return UK_STATUS_OVERFLOW;
  rows->first = c.add(untagged_address(layout.base), first_bits / 8);
  rows->count = outer.size;
  rows->stride = stride_bits / 8;
  rows->length = c.add(length_bits, 7) / 8;
  const uk_index_t end =
      c.add(rows->first, c.add(c.mul(rows->count - 1, rows->stride), rows->length));
  if (c.overflowed() || rows->first < 0 || end < 0) return UK_STATUS_OVERFLOW;
  return UK_STATUS_OK;
}

bool runs_are_disjoint(const Layout& layout) {
  if (is_empty(layout)) return true;
  const auto [outer, inner] = nested(layout);
  const bool inner_disjoint = inner.size <= 1 || magnitude(inner.stride) >= layout.run;
  const uk_index_t inner_reach = (inner.size - 1) * magnitude(inner.stride) + layout.run;
  return inner_disjoint && (outer.size <= 1 || magnitude(outer.stride) >= inner_reach);
}

bool rows_overlap(const Rows& a, const Rows& b) {
  if (a.count == 0 || b.count == 0) return false;
  const uk_index_t a_end = a.first + (a.count - 1) * a.stride + a.length;
  const uk_index_t b_end = b.first + (b.count - 1) * b.stride + b.length;
  if (a_end <= b.first || b_end <= a.first) return false;
  // The spans meet, but one operand's rows may lie in the other's gaps: look at each row of the one
  // with fewer.
  const Rows& few = a.count <= b.count ? a : b;
  const Rows& many = a.count <= b.count ? b : a;
  for (uk_index_t i = 0; i < few.count; ++i) {
    const uk_index_t begin = few.first + i * few.stride;
    const uk_index_t end = begin + few.length;
    // The first row of `many` that ends after `begin`.
    uk_index_t j = 0;
    const uk_index_t ahead = begin - many.first - many.length;
    if (ahead >= 0) {
      if (many.stride == 0) continue;
      j = ahead / many.stride + 1;
    }
    if (j < many.count && many.first + j * many.stride < end) return true;
  }
  return false;
}

}  // namespace uk
