// uk_unpack: check, select, walk the tiles.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/stream.h"
#include "ukernel/tile_walk.h"

namespace uk {
namespace {

// Of a row of tiles that lie side by side in memory, the lines of several in turns are read at a
// third of the speed of one tile after the other: of straight ones as large as this, and the larger
// the more. A call for each tile takes longer than a smaller one is worth; as many as make lines of
// the matrix are a compromise.
constexpr uk_index_t kLoneTileBytes = 512, kFewTilesBytes = 256;

class Unpacker {
 public:
  Unpacker(const uk_unpack_params_t& p, const TilePlan& plan)
      : plan_(plan),
        function_(function_of<uk_unpack_tile_fn>(plan.row)),
        tall_(function_of<uk_unpack_tile_fn>(plan.blocks.tall)),
        cpu_data_(p.cpu_data),
        in_(p.in),
        out_(p.out),
        prefetches_(plan.prefetches()) {}

  void block(uk_index_t i, uk_index_t j, uk_index_t rows, uk_index_t count) {
    if (plan_.blocks.output == BlockOutput::kDirect) {
      return unpack_block(row(i, j), plan_.stride0, i, j, rows, count);
    }
    const uk_index_t bytes = count * plan_.columns * plan_.bits / 8;
    if (plan_.blocks.gathers) {
      gather_columns(i, j, rows, count);
      unpack_rows(scratch_, count * plan_.columns, stage_, plan_.tile_size(),
                  rows * plan_.tile_size(), rows, count);
    } else {
      const uk_index_t at_once = tiles_at_once(count);
      for (uk_index_t c = 0; c < count; c += at_once) {
        const uk_index_t tiles = smaller(at_once, count - c);
        if (prefetches_) prefetch_ahead(i, j + c, rows, tiles);
        unpack_block(at(scratch_, c * plan_.columns, plan_.bits), count * plan_.columns, i, j + c,
                     rows, tiles);
      }
    }
    const uk_index_t row_stride = plan_.stride0 * plan_.bits / 8;
    stream_runs(cpu_data_, {row(i, j), row_stride, scratch_, bytes, rows * plan_.rows});
  }

  void partial(uk_index_t i, uk_index_t j, uk_index_t count) {
    const uk_index_t width = count * plan_.columns;
    function_(scratch_, tile(i, j), count, row_size(width), plan_.tiles_stride1);
    copy_rows(i, j, width, 0, row_size(width));
  }

  // Side by side in the copy: one call for all.
  void partial_column(uk_index_t i, uk_index_t j, uk_index_t count) {
    const uk_index_t width = count * plan_.columns;
    function_(scratch_, tile(i, j), count, width, plan_.tiles_stride0);
    for (uk_index_t t = 0; t < count; ++t) {
      copy_rows(i + t, j, plan_.columns, t * plan_.columns, width);
    }
  }

  void element_by_element(uk_index_t i, uk_index_t j) {
    switch (plan_.bits) {
      case 4:
        return unpack_nibbles(i, j);
      case 8:
        return unpack_elements<uint8_t>(i, j);
      case 16:
        return unpack_elements<uint16_t>(i, j);
      case 32:
        return unpack_elements<uint32_t>(i, j);
      default:
        return unpack_elements<uint64_t>(i, j);
    }
  }

 private:
  // How many of `count` tiles of a row are unpacked before the next.
  uk_index_t tiles_at_once(uk_index_t count) const {
    const uk_index_t tile_bytes = plan_.tile_size() * plan_.bits / 8, even = plan_.even_tiles();
    const bool far_apart = plan_.tiles_stride1 != plan_.tile_size() && !prefetches_;
    if (far_apart || tile_bytes < kFewTilesBytes) return count;
    if (!plan_.transposed && tile_bytes >= kLoneTileBytes) return even;
    return (ceil_div(kLineBytes * 8, plan_.columns * plan_.bits) + even - 1) & -even;
  }

  // The tiles that are unpacked some time after these. Apart from the loops that copy.
  UK_NOINLINE void prefetch_ahead(uk_index_t i, uk_index_t j, uk_index_t rows,
                                  uk_index_t count) const {
    if (!plan_.go_ahead(&i, &j, rows)) return;
    const uk_index_t tile_bytes = plan_.tile_size() * plan_.bits / 8;
    const auto start = reinterpret_cast<uintptr_t>(tile(i, j));
    if (plan_.tiles_stride1 == plan_.tile_size()) {
      return prefetch_run<kIntoL2>(start, count * tile_bytes);
    }
    for (uk_index_t c = 0; c < count; ++c) {
      prefetch_run<kIntoL2>(start + c * plan_.tiles_stride1 * plan_.bits / 8, rows * tile_bytes);
    }
  }

  // A block's columns of tiles, one behind the other in the stage. Each line of them is read once:
  // where so many columns share sets of the caches, it is gone by the next time.
  void gather_columns(uk_index_t i, uk_index_t j, uk_index_t rows, uk_index_t count) {
    const uk_index_t bytes = rows * plan_.tile_size() * plan_.bits / 8;
    const uk_index_t lines = bytes & -kLineBytes;
    char* to = stage_;
    for (uk_index_t c = 0; c < count; ++c, to += bytes) {
      const char* from = tile(i, j + c);
      for (uk_index_t at = 0; at < lines; at += kLineBytes) {
        prefetch<kIntoL2>(reinterpret_cast<uintptr_t>(from + at) + kColumnAheadBytes);
        __builtin_memcpy(to + at, from + at, kLineBytes);
      }
      __builtin_memcpy(to + lines, from + lines, static_cast<size_t>(bytes - lines));
    }
  }

  // To rows at `out` with a stride of their own.
  void unpack_block(char* out, uk_index_t out_stride, uk_index_t i, uk_index_t j, uk_index_t rows,
                    uk_index_t count) const {
    const int bits = plan_.bits, tall_bits = plan_.blocks.tall_bits;
    if (tall_) {
      const uk_index_t at_once = plan_.blocks.tall_tile_rows;
      for (; rows >= at_once; rows -= at_once, i += at_once) {
        tall_(out, tile(i, j), count, out_stride * bits / tall_bits,
              plan_.tiles_stride1 * bits / tall_bits);
        out = at(out, at_once * plan_.rows * out_stride, bits);
      }
    }
    unpack_rows(out, out_stride, tile(i, j), plan_.tiles_stride0, plan_.tiles_stride1, rows, count);
  }

  // From tiles at `in` with strides of their own.
  void unpack_rows(char* out, uk_index_t out_stride, const char* in, uk_index_t in_stride0,
                   uk_index_t in_stride1, uk_index_t rows, uk_index_t count) const {
    const int bits = plan_.bits;
    for (uk_index_t r = 0; r < rows; ++r) {
      function_(at(out, r * plan_.rows * out_stride, bits), at(in, r * in_stride0, bits), count,
                out_stride, in_stride1);
    }
  }

  // The first element of tile (i, j) in the matrix.
  char* row(uk_index_t i, uk_index_t j) const {
    return at(out_, plan_.element(i * plan_.rows, j * plan_.columns), plan_.bits);
  }

  const char* tile(uk_index_t i, uk_index_t j) const {
    return at(in_, plan_.tile(i, j), plan_.bits);
  }

  // Of a copy in whole bytes.
  uk_index_t row_size(uk_index_t width) const {
    return ceil_div(width * plan_.bits, 8) * 8 / plan_.bits;
  }

  // What the matrix has of `width` columns from tile (i, j) on, from a copy of the tile's rows that
  // the tile function has left at `first` in the scratch, with the padding, which stays there.
  void copy_rows(uk_index_t i, uk_index_t j, uk_index_t width, uk_index_t first,
                 uk_index_t from_stride) {
    const uk_index_t r0 = i * plan_.rows, c0 = j * plan_.columns;
    const uk_index_t rows = smaller(plan_.rows, plan_.size0 - r0);
    const uk_index_t columns = smaller(width, plan_.size1 - c0);
    const int bits = plan_.bits;
    copy_row_parts(row(i, j), at(scratch_, first, bits),
                   {rows, columns * bits / 8, plan_.stride0 * bits / 8, from_stride * bits / 8});
  }

  // Calls store(element, its place in the tile) for every element of a tile.
  template <class Store>
  void for_each_element(uk_index_t i, uk_index_t j, Store store) const {
    const uk_index_t r0 = i * plan_.rows, c0 = j * plan_.columns;
    const uk_index_t rows = smaller(plan_.rows, plan_.size0 - r0);
    const uk_index_t columns = smaller(plan_.columns, plan_.size1 - c0);
    for (uk_index_t r = 0; r < rows; ++r) {
      for (uk_index_t c = 0; c < columns; ++c) {
        store(plan_.element(r0 + r, c0 + c),
              plan_.transposed ? c * plan_.rows + r : r * plan_.columns + c);
      }
    }
  }

  template <class Element>
  void unpack_elements(uk_index_t i, uk_index_t j) {
    const char* in = tile(i, j);
    for_each_element(i, j, [&](uk_index_t element, uk_index_t place) {
      __builtin_memcpy(at(out_, element, plan_.bits), in + place * sizeof(Element),
                       sizeof(Element));
    });
  }

  // Both nibbles of every byte written are elements of the output, though not always of this tile.
  void unpack_nibbles(uk_index_t i, uk_index_t j) {
    const auto* in = reinterpret_cast<const uint8_t*>(tile(i, j));
    auto* out = static_cast<uint8_t*>(out_);
    for_each_element(i, j, [&](uk_index_t element, uk_index_t place) {
      const int value = in[place >> 1] >> ((place & 1) * 4) & 0xF;
      const int shift = static_cast<int>(element & 1) * 4;
      uint8_t& byte = out[element >> 1];
      byte = static_cast<uint8_t>((byte & ~(0xF << shift)) | value << shift);
    });
  }

  const TilePlan& plan_;
  uk_unpack_tile_fn *const function_, *const tall_;
  const uint64_t* const cpu_data_;
  const void* in_;
  void* out_;
  const bool prefetches_;
  alignas(64) char scratch_[kScratchBytes];
  alignas(64) char stage_[kScratchBytes];
};

}  // namespace
}  // namespace uk

extern "C" uk_status_t uk_unpack(const uk_unpack_params_t* params) {
  uk_unpack_params_t p;
  uk_status_t status = uk::read_params(params, p);
  if (status != UK_STATUS_OK) return status;
  const uk::TileCopy copy = {UK_OP_UNPACK, p.flags,     p.cpu_data,    p.out,         p.out_offset,
                             p.out_size0,  p.out_size1, p.out_stride0, p.out_stride1, p.in,
                             p.in_offset,  p.in_size0,  p.in_size1,    p.in_stride0,  p.in_stride1,
                             p.in_size2,   p.in_size3};
  uk::TilePlan plan;
  status = uk::plan_tiles(copy, &plan);
  if (status != UK_STATUS_OK) return status;
  uk::Unpacker unpacker(p, plan);
  uk::visit_tiles(plan, unpacker);
  if (plan.blocks.output == uk::BlockOutput::kStreamed) uk::end_streams();
  return UK_STATUS_OK;
}
