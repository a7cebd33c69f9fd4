// Where the operands of an op lie in memory: overflow, split bytes, overlap.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/internal.h"

namespace uk {
namespace {

uk_index_t magnitude(uk_index_t stride) { return stride < 0 ? -stride : stride; }

// Orders the dimensions by stride, so that dimension 1 nests inside dimension 0. A dimension with
// one entry has no stride.
Layout nested(Layout layout) {
  if (layout.size0 <= 1) layout.stride0 = 0;
  if (layout.size1 <= 1) layout.stride1 = 0;
  const bool outer_is_smaller = magnitude(layout.stride0) < magnitude(layout.stride1);
  if (outer_is_smaller) {
    return {layout.base,  layout.offset,  layout.size1, layout.stride1,
            layout.size0, layout.stride0, layout.run,   layout.bits};
  }
  return layout;
}

bool is_empty(const Layout& layout) {
  return layout.size0 == 0 || layout.size1 == 0 || layout.run == 0;
}

}  // namespace

uk_status_t rows_of(const Layout& described, Rows* rows) {
  *rows = {0, 0, 0, 0};
  if (is_empty(described)) return UK_STATUS_OK;
  // INT64_MIN has no magnitude; a stride of one entry is never used.
  if ((described.size0 > 1 && described.stride0 == INT64_MIN) ||
      (described.size1 > 1 && described.stride1 == INT64_MIN)) {
    return UK_STATUS_OVERFLOW;
  }
  const Layout layout = nested(described);
  if (layout.bits < 8) {
    // The run itself may be odd: the op decides whether that is legal for it.
    const uk_index_t splits = layout.offset | layout.stride0 | layout.stride1;
    if ((splits & 1) != 0) return UK_STATUS_SPLIT_BYTE;
  }
  Checked c;
  const uk_index_t reach0 = c.mul(layout.size0 - 1, layout.stride0);
  const uk_index_t reach1 = c.mul(layout.size1 - 1, layout.stride1);
  const uk_index_t start =
      c.add(layout.offset, c.add(reach0 < 0 ? reach0 : 0, reach1 < 0 ? reach1 : 0));
  const uk_index_t length = c.add(magnitude(reach1), layout.run);
  const uk_index_t first_bits = c.mul(start, layout.bits);
  const uk_index_t length_bits = c.mul(length, layout.bits);
  const uk_index_t stride_bits = c.mul(magnitude(layout.stride0), layout.bits);
  if (c.overflowed()) return UK_STATUS_OVERFLOW;
  rows->first =
      c.add(static_cast<uk_index_t>(reinterpret_cast<uintptr_t>(layout.base)), first_bits / 8);
  rows->count = layout.size0;
  rows->stride = stride_bits / 8;
  rows->length = c.add(length_bits, 7) / 8;
  const uk_index_t end =
      c.add(rows->first, c.add(c.mul(rows->count - 1, rows->stride), rows->length));
  if (c.overflowed() || rows->first < 0 || end < 0) return UK_STATUS_OVERFLOW;
  return UK_STATUS_OK;
}

bool runs_are_disjoint(const Layout& described) {
  if (is_empty(described)) return true;
  const Layout layout = nested(described);
  const bool inner = layout.size1 <= 1 || magnitude(layout.stride1) >= layout.run;
  const uk_index_t inner_reach = (layout.size1 - 1) * magnitude(layout.stride1) + layout.run;
  const bool outer = layout.size0 <= 1 || magnitude(layout.stride0) >= inner_reach;
  return inner && outer;
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
