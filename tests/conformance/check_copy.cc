// pack and unpack tiles against their definition in ukernel.h.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>

#include "tests/conformance/check.h"
#include "tests/conformance/numbers.h"

namespace uk_conformance {
namespace {

// Both ops copy between tiles and a matrix: element (i, j) of tile t lies at packed() in one and at
// matrix() in the other.
struct CopyLayout {
  uk_tile_sizes_t tile;  // m0 x n0 as stored
  bool transposed;
  int64_t count, packed_stride, matrix_stride;

  int64_t packed(int64_t t, int i, int j) const { return t * packed_stride + i * tile.n0 + j; }
  int64_t matrix(int64_t t, int i, int j) const {
    return transposed ? j * matrix_stride + t * tile.m0 + i : i * matrix_stride + t * tile.n0 + j;
  }

  int64_t tile_size() const { return int64_t{tile.m0} * tile.n0; }
  int64_t matrix_rows() const { return transposed ? tile.n0 : tile.m0; }
  int64_t matrix_columns() const { return count * (transposed ? tile.m0 : tile.n0); }
  int64_t packed_extent() const {
    return count == 0 ? 0 : (count - 1) * packed_stride + tile_size();
  }
  int64_t matrix_extent() const {
    return count == 0 ? 0 : (matrix_rows() - 1) * matrix_stride + matrix_columns();
  }
};

struct Strides {
  const char* name;
  int64_t packed_gap, matrix_gap, matrix_multiple;
};

// By elements, so that rows and tiles lose their alignment; of four-bit elements by bytes. Their
// rows start on bytes, so one of an odd number of columns leaves half a byte over.
constexpr Strides kStrides[] = {
    {"tight strides", 0, 0, 1},      {"loose matrix stride", 0, 2, 1},
    {"loose tile stride", 6, 0, 1},  {"loose strides", 1, 3, 1},
    {"wide strides", 1024, 4096, 1}, {"rows in the same cache sets", 0, 1, 4096}};

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

class CopyCheck {
 public:
  explicit CopyCheck(const uk_tile_row_t& row)
      : row_(row),
        packs_(row.op == UK_OP_PACK),
        width_(width_of(row)),
        shape_(shape_of(row)),
        catcher_({&in_, &out_}) {}

  std::string run() {
    // 128 columns are whole lines of any elements; 300 of two bytes are more than tiles stage at
    // once.
    for (const int64_t count : {0, 1, 2, 3, 7, 16, 17, 33, 128, 300}) {
      for (const Strides& strides : kStrides) {
        CopyLayout layout = {};
        layout.tile = shape_;
        layout.transposed = (row_.flags & UK_PACK_TRANSPOSE_INNER) != 0;
        layout.count = count;
        const int64_t unit = width_ == 4 ? 2 : 1;
        layout.packed_stride = layout.tile_size() + strides.packed_gap * unit;
        layout.matrix_stride =
            round_up(round_up(layout.matrix_columns(), unit) + strides.matrix_gap * unit,
                     strides.matrix_multiple);
        const bool sweep = count <= 33 && layout.matrix_stride < 4096;
        const std::string wrong = run_layout(layout, strides, sweep);
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  }

 private:
  std::string run_layout(const CopyLayout& layout, const Strides& strides, bool sweep) {
    const int64_t packed_extent = layout.packed_extent(), matrix_extent = layout.matrix_extent();
    const std::vector<uint8_t> in = random_elements(packs_ ? matrix_extent : packed_extent, 1);
    const std::vector<uint8_t> before = random_elements(packs_ ? packed_extent : matrix_extent, 2);
    // The gaps keep what they held.
    std::vector<uint8_t> after = before;
    for_each_element(layout, [&](int64_t t, int i, int j) {
      store_bits(after.data(), out_index(layout, t, i, j), width_,
                 load_bits(in.data(), in_index(layout, t, i, j), width_));
    });
    const int64_t element_bytes = (width_ + 7) / 8;
    const auto places = placements({element_bytes, element_bytes}, sweep);
    for (const std::vector<Placement>& place : places) {
      in_.place(in, place[0], GuardedBuffer::read_only);
      out_.place(before, place[1], GuardedBuffer::writable);
      std::string wrong = catcher_.run([&] { call(layout); });
      if (wrong.empty()) wrong = out_.damage_outside();
      if (wrong.empty()) wrong = first_difference(layout, after);
      if (wrong.empty()) continue;
      return wrong + "\n  with count = " + std::to_string(layout.count) + ", " + strides.name +
             " (" + (packs_ ? "out_stride1 = " : "in_stride1 = ") +
             std::to_string(layout.packed_stride) + ", " +
             (packs_ ? "in_stride0 = " : "out_stride0 = ") + std::to_string(layout.matrix_stride) +
             ")\n  " + describe(in_, place[0]) + "; " + describe(out_, place[1]);
    }
    return "";
  }

  void call(const CopyLayout& layout) {
    if (row_.function) {
      // The two signatures are one type: out, in, count, out stride, in stride.
      const auto tile = reinterpret_cast<uk_pack_tile_fn*>(row_.function);
      return tile(out_.data(), in_.data(), layout.count,
                  packs_ ? layout.packed_stride : layout.matrix_stride,
                  packs_ ? layout.matrix_stride : layout.packed_stride);
    }
    // An error leaves the output as it was, which the comparison shows.
    if (packs_) {
      uk_pack_params_t params = {};
      call_op(uk_pack, params, layout);
    } else {
      uk_unpack_params_t params = {};
      call_op(uk_unpack, params, layout);
    }
  }

  template <class Params>
  void call_op(uk_status_t (*op)(const Params*), Params& params, const CopyLayout& layout) {
    params.struct_size = sizeof(params);
    params.in = in_.data();
    params.out = out_.data();
    params.flags = row_.flags;
    set_sizes(params, layout);
    op(&params);
  }
  static void set_sizes(uk_pack_params_t& params, const CopyLayout& layout) {
    params.in_stride0 = layout.matrix_stride;
    params.in_stride1 = 1;
    params.in_size0 = layout.matrix_rows();
    params.in_size1 = layout.matrix_columns();
    params.out_stride0 = layout.packed_extent();
    params.out_stride1 = layout.packed_stride;
    params.out_size0 = 1;
    params.out_size1 = layout.count;
    params.out_size2 = layout.tile.m0;
    params.out_size3 = layout.tile.n0;
  }
  static void set_sizes(uk_unpack_params_t& params, const CopyLayout& layout) {
    params.in_stride0 = layout.packed_extent();
    params.in_stride1 = layout.packed_stride;
    params.in_size0 = 1;
    params.in_size1 = layout.count;
    params.in_size2 = layout.tile.m0;
    params.in_size3 = layout.tile.n0;
    params.out_stride0 = layout.matrix_stride;
    params.out_stride1 = 1;
    params.out_size0 = layout.matrix_rows();
    params.out_size1 = layout.matrix_columns();
  }

  int64_t in_index(const CopyLayout& layout, int64_t t, int i, int j) const {
    return packs_ ? layout.matrix(t, i, j) : layout.packed(t, i, j);
  }
  int64_t out_index(const CopyLayout& layout, int64_t t, int i, int j) const {
    return packs_ ? layout.packed(t, i, j) : layout.matrix(t, i, j);
  }

  template <class Function>
  static void for_each_element(const CopyLayout& layout, Function function) {
    for (int64_t t = 0; t < layout.count; ++t) {
      for (int i = 0; i < layout.tile.m0; ++i) {
        for (int j = 0; j < layout.tile.n0; ++j) function(t, i, j);
      }
    }
  }

  std::vector<uint8_t> random_elements(int64_t count, uint64_t seed) const {
    return random_bytes(static_cast<size_t>((count * width_ + 7) / 8), seed);
  }

  // In the order of the tiles; then the gaps, where nothing may have been written.
  std::string first_difference(const CopyLayout& layout, const std::vector<uint8_t>& after) const {
    if (std::equal(after.begin(), after.end(), out_.data())) return "";
    std::string text;
    for_each_element(layout, [&](int64_t t, int i, int j) {
      if (!text.empty()) return;
      const int64_t index = out_index(layout, t, i, j);
      const uint64_t actual = load_bits(out_.data(), index, width_);
      const uint64_t expected = load_bits(after.data(), index, width_);
      if (actual == expected) return;
      text = "element (i=" + std::to_string(i) + ", j=" + std::to_string(j) +
             ") of tile t=" + std::to_string(t) + " at out[" + std::to_string(index) + "] is " +
             hex(actual, width_) + ", expected " + hex(expected, width_);
    });
    if (!text.empty()) return text;
    const auto differs = std::mismatch(after.begin(), after.end(), out_.data());
    const int64_t byte = differs.first - after.begin();
    return "wrote into the gap at out[" + std::to_string(byte * 8 / width_) + "]";
  }

  const uk_tile_row_t& row_;
  const bool packs_;
  const int width_;
  const uk_tile_sizes_t shape_;
  GuardedBuffer in_{"in"}, out_{"out"};
  FaultCatcher catcher_;
};

}  // namespace

std::string check_copy(const uk_tile_row_t& row) { return CopyCheck(row).run(); }

}  // namespace uk_conformance
