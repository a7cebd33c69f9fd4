// Copies of parts of rows.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_COPY_ROWS_H_
#define UKERNEL_COPY_ROWS_H_

#include "ukernel/internal.h"

namespace uk {

// Parts of rows of tiles that are not full, as of a tile that reaches beyond the matrix. A row is
// `bytes`, from its neighbour `stride` bytes away.
struct RowParts {
  uk_index_t rows, bytes, to_stride, from_stride;
};

// Rows of kBytes to twice as many as two pieces, which may overlap.
template <size_t kBytes>
UK_INLINE void copy_as_two(char* to, const char* from, const RowParts& parts) {
  const uk_index_t second = parts.bytes - static_cast<uk_index_t>(kBytes);
  for (uk_index_t r = 0; r < parts.rows; ++r, to += parts.to_stride, from += parts.from_stride) {
    char head[kBytes], tail[kBytes];
    __builtin_memcpy(head, from, kBytes);
    __builtin_memcpy(tail, from + second, kBytes);
    __builtin_memcpy(to, head, kBytes);
    __builtin_memcpy(to + second, tail, kBytes);
  }
}

// Of more, as pieces of kPieceBytes, the last of which may overlap the one before.
constexpr uk_index_t kPieceBytes = 16, kMostBytesInPieces = 256;
UK_INLINE void copy_in_pieces(char* to, const char* from, const RowParts& parts) {
  const uk_index_t last = parts.bytes - kPieceBytes;
  for (uk_index_t r = 0; r < parts.rows; ++r, to += parts.to_stride, from += parts.from_stride) {
    for (uk_index_t at = 0; at < last; at += kPieceBytes) {
      __builtin_memcpy(to + at, from + at, kPieceBytes);
    }
    __builtin_memcpy(to + last, from + last, kPieceBytes);
  }
}

// Calls for rows of a few bytes would take longer than the tiles do, and of up to
// kMostBytesInPieces about as long as the copy.
UK_INLINE void copy_row_parts(char* to, const char* from, const RowParts& parts) {
  if (parts.bytes >= 16 && parts.bytes <= 32) return copy_as_two<16>(to, from, parts);
  if (parts.bytes >= 8 && parts.bytes < 16) return copy_as_two<8>(to, from, parts);
  if (parts.bytes >= 4 && parts.bytes < 8) return copy_as_two<4>(to, from, parts);
  if (parts.bytes >= 2 && parts.bytes < 4) return copy_as_two<2>(to, from, parts);
  if (parts.bytes > 32 && parts.bytes <= kMostBytesInPieces) return copy_in_pieces(to, from, parts);
  for (uk_index_t r = 0; r < parts.rows; ++r) {
    __builtin_memcpy(to + r * parts.to_stride, from + r * parts.from_stride,
                     static_cast<size_t>(parts.bytes));
  }
}

}  // namespace uk

#endif  // UKERNEL_COPY_ROWS_H_
