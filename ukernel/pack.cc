// uk_pack: check, select, walk the tiles.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/stream.h"
#include "ukernel/tile_walk.h"

namespace uk {
namespace {

template <class Element>
void fill_elements(char* out, uk_index_t count, uint64_t value) {
  const Element element = static_cast<Element>(value);
  for (uk_index_t i = 0; i < count; ++i) {
    __builtin_memcpy(out + i * sizeof(Element), &element, sizeof(Element));
  }
}

// The padding value as every byte of a run, -1 if its bytes differ.
int repeated_byte(uint64_t value, int bits) {
  const uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : ~UINT64_C(0);
  const uint64_t byte = value & 0xFF;
  return ((byte * UINT64_C(0x0101010101010101) ^ value) & mask) == 0 ? static_cast<int>(byte) : -1;
}

void fill(char* out, uk_index_t count, uint64_t value, int bits) {
  const int byte = repeated_byte(value, bits);
  if (byte >= 0) {
    __builtin_memset(out, byte, static_cast<size_t>(count * bits / 8));
  } else if (bits == 16) {
    fill_elements<uint16_t>(out, count, value);
  } else if (bits == 32) {
    fill_elements<uint32_t>(out, count, value);
  } else {
    fill_elements<uint64_t>(out, count, value);
  }
}

class Packer {
 public:
  Packer(const uk_pack_params_t& p, const TilePlan& plan)
      : plan_(plan),
        function_(function_of<uk_pack_tile_fn>(plan.row)),
        tall_(function_of<uk_pack_tile_fn>(plan.blocks.tall)),
        cpu_data_(p.cpu_data),
        in_(p.in),
        out_(p.out),
        padding_(p.padding_value),
        prefetches_blocks_(plan.prefetches() && plan.blocks.output == BlockOutput::kStreamed),
        prefetches_rows_(plan.prefetches() && !prefetches_blocks_) {
    if (pack_type_bits(p.flags) == 4) padding_ = (padding_ & 0xF) * 0x11;  // as a byte
  }

  void block(uk_index_t i, uk_index_t j, uk_index_t rows, uk_index_t count) {
    const BlockOutput output = plan_.blocks.output;
    if (output == BlockOutput::kDirect) {
      return pack_block(tile(i, j), i, j, rows, count, plan_.tiles_stride0, plan_.tiles_stride1);
    }
    if (output == BlockOutput::kRestacked) return restack(i, j, rows, count);
    const uk_index_t column_size = rows * plan_.tile_size();
    const uk_index_t column_bytes = column_size * plan_.bits / 8;
    if (prefetches_blocks_) prefetch_ahead(i, j, rows, count);
    if (plan_.tiles_stride1 == plan_.tile_size()) {  // rows of tiles are runs
      pack_block(scratch_, i, j, rows, count, count * plan_.tile_size(), plan_.tile_size());
      return stream_runs(cpu_data_, {tile(i, j), plan_.tiles_stride0 * plan_.bits / 8, scratch_,
                                     count * plan_.tile_size() * plan_.bits / 8, rows});
    }
    pack_block(scratch_, i, j, rows, count, plan_.tile_size(), column_size);
    if (output == BlockOutput::kStreamed) {
      return stream_runs(cpu_data_, {tile(i, j), plan_.tiles_stride1 * plan_.bits / 8, scratch_,
                                     column_bytes, count});
    }
    for (uk_index_t c = 0; c < count; ++c) {
      __builtin_memcpy(tile(i, j + c), scratch_ + c * column_bytes,
                       static_cast<size_t>(column_bytes));
    }
  }

  void partial(uk_index_t i, uk_index_t j, uk_index_t count) {
    const uk_index_t row_size = stage(i, j, 1, count * plan_.columns);
    function_(tile(i, j), scratch_, count, plan_.tiles_stride1, row_size);
  }

  // Side by side in the copy: one call for all, by when what was copied in parts is in the cache.
  void partial_column(uk_index_t i, uk_index_t j, uk_index_t count) {
    const uk_index_t row_size = stage(i, j, count, plan_.columns);
    function_(tile(i, j), scratch_, count, plan_.tiles_stride0, row_size);
  }

  void element_by_element(uk_index_t i, uk_index_t j) {
    switch (plan_.bits) {
      case 4:
        return pack_nibbles(i, j);
      case 8:
        return pack_elements<uint8_t>(i, j);
      case 16:
        return pack_elements<uint16_t>(i, j);
      case 32:
        return pack_elements<uint32_t>(i, j);
      default:
        return pack_elements<uint64_t>(i, j);
    }
  }

  // What came with a last four-bit element that shares its byte with none of the matrix's.
  void pad_half_bytes() {
    const uk_index_t c = plan_.size1 - 1, j = quotient(c, plan_.columns);
    for (uk_index_t i = 0; i * plan_.rows < plan_.size0; ++i) {
      char* byte = tile(i, j) + c - j * plan_.columns;
      for (uk_index_t r = 0; r < smaller(plan_.rows, plan_.size0 - i * plan_.rows); ++r) {
        pad_upper_half(byte);
        byte += plan_.columns;
      }
    }
  }

  // Tiles that hold no element.
  void padding_tiles() {
    if (plan_.tiles1 == 0) return;  // any number of rows without a tile is legal
    const bool is_empty = plan_.size0 == 0 || plan_.size1 == 0;
    const uk_index_t covered0 = is_empty ? 0 : ceil_div(plan_.size0, plan_.rows);
    const uk_index_t covered1 = is_empty ? 0 : ceil_div(plan_.size1, plan_.columns);
    const uk_index_t bytes = plan_.tile_size() * plan_.bits / 8;
    for (uk_index_t i = 0; i < plan_.tiles0; ++i) {
      for (uk_index_t j = i < covered0 ? covered1 : 0; j < plan_.tiles1; ++j) {
        pad(tile(i, j), bytes);
      }
    }
  }

 private:
  void pad(char* out, uk_index_t bytes) const {
    const int bits = plan_.bits == 4 ? 8 : plan_.bits;
    fill(out, bytes * 8 / bits, padding_, bits);
  }

  void pad_upper_half(char* byte) const {
    *byte = static_cast<char>((*byte & 0x0F) | (padding_ & 0xF0));
  }

  // The parts of rows that are packed some time after these. Apart from the loops that copy.
  UK_NOINLINE void prefetch_ahead(uk_index_t i, uk_index_t j, uk_index_t rows,
                                  uk_index_t count) const {
    if (!plan_.go_ahead(&i, &j, rows)) return;
    const uk_index_t width = count * plan_.columns * plan_.bits / 8;
    const auto start = reinterpret_cast<uintptr_t>(row(i, j));
    for (uk_index_t r = 0; r < rows * plan_.rows; ++r) {
      prefetch_run<kIntoL2>(start + r * plan_.stride0 * plan_.bits / 8, width);
    }
  }

  // To tiles at `out` with strides of their own.
  void pack_block(char* out, uk_index_t i, uk_index_t j, uk_index_t rows, uk_index_t count,
                  uk_index_t out_stride0, uk_index_t out_stride1) const {
    const int bits = plan_.bits, tall_bits = plan_.blocks.tall_bits;
    if (tall_) {
      const uk_index_t at_once = plan_.blocks.tall_tile_rows;
      for (; rows >= at_once; rows -= at_once, i += at_once) {
        if (prefetches_rows_) prefetch_ahead(i, j, at_once, count);
        tall_(out, row(i, j), count, out_stride1 * bits / tall_bits,
              plan_.stride0 * bits / tall_bits);
        out = at(out, at_once * out_stride0, bits);
      }
    }
    pack_rows(out, i, j, rows, count, out_stride0, out_stride1);
  }

  void pack_rows(char* out, uk_index_t i, uk_index_t j, uk_index_t rows, uk_index_t count,
                 uk_index_t out_stride0, uk_index_t out_stride1) const {
    for (uk_index_t r = 0; r < rows; ++r) {
      if (prefetches_rows_) prefetch_ahead(i + r, j, 1, count);
      char* const to = at(out, r * out_stride0, plan_.bits);
      function_(to, row(i + r, j), count, out_stride1, plan_.stride0);
    }
  }

  void restack(uk_index_t i, uk_index_t j, uk_index_t rows, uk_index_t count) {
    if (rows < plan_.blocks.tile_rows) {
      return pack_rows(tile(i, j), i, j, rows, count, plan_.tiles_stride0, plan_.tiles_stride1);
    }
    const uk_index_t row_size = count * plan_.tile_size();
    pack_rows(scratch_, i, j, rows, count, row_size, plan_.tile_size());
    const int bits = plan_.bits, tall_bits = plan_.blocks.tall_bits;
    tall_(tile(i, j), scratch_, count, plan_.tiles_stride1 * bits / tall_bits,
          row_size * bits / tall_bits);
  }

  // The first element of tile (i, j) in the matrix.
  const char* row(uk_index_t i, uk_index_t j) const {
    return at(in_, plan_.element(i * plan_.rows, j * plan_.columns), plan_.bits);
  }

  char* tile(uk_index_t i, uk_index_t j) const { return at(out_, plan_.tile(i, j), plan_.bits); }

  // Of a stage of tiles that are not full: `runs` side by side, `width` elements each, of which
  // `rows` rows and `columns` columns are the matrix's.
  struct Stage {
    uk_index_t runs, width, rows, columns;
  };

  // Fills the scratch for the tile function with the runs from tile (i, j) on, each a row of tiles
  // below the other, and their padding. Returns how many elements it has in a row.
  uk_index_t stage(uk_index_t i, uk_index_t j, uk_index_t runs, uk_index_t width) {
    const int bits = plan_.bits;
    const uk_index_t r0 = i * plan_.rows, c0 = j * plan_.columns;
    const Stage next = {runs, width, smaller(plan_.rows, plan_.size0 - r0),
                        smaller(width, plan_.size1 - c0)};
    const uk_index_t run_bytes = ceil_div(width * bits, 8);
    const uk_index_t row_bytes = runs * run_bytes, bytes = ceil_div(next.columns * bits, 8);
    // Padding of an earlier call that left the same places free is still there.
    const bool padded = next.runs == staged_.runs && next.width == staged_.width &&
                        next.rows == staged_.rows && next.columns == staged_.columns;
    if (!padded) pad(scratch_, plan_.rows * row_bytes);
    const RowParts parts = {next.rows, bytes, row_bytes, plan_.stride0 * bits / 8};
    for (uk_index_t run = 0; run < runs; ++run) {
      copy_row_parts(scratch_ + run * run_bytes, row(i + run, j), parts);
    }
    if (next.columns * bits % 8 != 0) {  // what follows a last low nibble is not the matrix's
      for (uk_index_t run = 0; run < next.rows * runs; ++run) {
        pad_upper_half(scratch_ + run * run_bytes + bytes - 1);
      }
    }
    staged_ = next;
    return row_bytes * 8 / bits;
  }

  // Calls store(place in the tile, is it an element, which one) for every place.
  template <class Store>
  void for_each_place(uk_index_t i, uk_index_t j, Store store) const {
    const uk_index_t r0 = i * plan_.rows, c0 = j * plan_.columns;
    const uk_index_t tile0 = plan_.transposed ? plan_.columns : plan_.rows;
    const uk_index_t tile1 = plan_.transposed ? plan_.rows : plan_.columns;
    for (uk_index_t p = 0; p < tile0; ++p) {
      for (uk_index_t q = 0; q < tile1; ++q) {
        const uk_index_t r = r0 + (plan_.transposed ? q : p), c = c0 + (plan_.transposed ? p : q);
        const bool is_element = r < plan_.size0 && c < plan_.size1;
        store(p * tile1 + q, is_element, is_element ? plan_.element(r, c) : 0);
      }
    }
  }

  template <class Element>
  void pack_elements(uk_index_t i, uk_index_t j) {
    char* out = tile(i, j);
    for_each_place(i, j, [&](uk_index_t place, bool is_element, uk_index_t element) {
      Element value = static_cast<Element>(padding_);
      if (is_element) __builtin_memcpy(&value, at(in_, element, plan_.bits), sizeof(value));
      __builtin_memcpy(out + place * sizeof(value), &value, sizeof(value));
    });
  }

  void pack_nibbles(uk_index_t i, uk_index_t j) {
    const auto* in = static_cast<const uint8_t*>(in_);
    auto* out = reinterpret_cast<uint8_t*>(tile(i, j));
    for_each_place(i, j, [&](uk_index_t place, bool is_element, uk_index_t element) {
      const int low = static_cast<int>(padding_ & 0xF);
      const int value = is_element ? in[element >> 1] >> ((element & 1) * 4) & 0xF : low;
      // A tile is whole bytes and its places are visited in order: the low nibble starts a byte.
      if (place % 2 == 0) {
        out[place / 2] = static_cast<uint8_t>(value);
      } else {
        out[place / 2] = static_cast<uint8_t>(out[place / 2] | value << 4);
      }
    });
  }

  const TilePlan& plan_;
  uk_pack_tile_fn *const function_, *const tall_;
  const uint64_t* const cpu_data_;
  const void* in_;
  void* out_;
  uint64_t padding_;
  const bool prefetches_blocks_, prefetches_rows_;  // before each block, each row of tiles
  Stage staged_ = {};
  alignas(64) char scratch_[kScratchBytes];
};

}  // namespace
}  // namespace uk

extern "C" uk_status_t uk_pack(const uk_pack_params_t* params) {
  uk_pack_params_t p;
  uk_status_t status = uk::read_params(params, p);
  if (status != UK_STATUS_OK) return status;
  const uk::TileCopy copy = {UK_OP_PACK,   p.flags,     p.cpu_data,   p.in,          p.in_offset,
                             p.in_size0,   p.in_size1,  p.in_stride0, p.in_stride1,  p.out,
                             p.out_offset, p.out_size0, p.out_size1,  p.out_stride0, p.out_stride1,
                             p.out_size2,  p.out_size3};
  uk::TilePlan plan;
  status = uk::plan_tiles(copy, &plan);
  if (status != UK_STATUS_OK) return status;
  uk::Packer packer(p, plan);
  uk::visit_tiles(plan, packer);
  if (plan.half_last_byte) packer.pad_half_bytes();
  packer.padding_tiles();
  if (plan.blocks.output == uk::BlockOutput::kStreamed) uk::end_streams();
  return UK_STATUS_OK;
}
