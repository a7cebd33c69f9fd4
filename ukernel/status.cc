// Status texts and the ABI version.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/ukernel.h"

extern "C" {

uint32_t uk_abi_version(void) { return UK_ABI_VERSION; }

const char* uk_status_string(uk_status_t status) {
  switch (status) {
    case UK_STATUS_OK:
      return "ok";
    case UK_STATUS_BAD_STRUCT_SIZE:
      return "params are null, or struct_size is not one this library understands";
    case UK_STATUS_BAD_TYPE:
      return "unknown element type";
    case UK_STATUS_BAD_FLAGS:
      return "unknown flag";
    case UK_STATUS_NULL_POINTER:
      return "null buffer with a non-empty extent, or nowhere to put a result";
    case UK_STATUS_BAD_EXTENT:
      return "negative extent, or tiles that do not cover the matrix";
    case UK_STATUS_BAD_TILE_SHAPE:
      return "tile dimension that is zero or negative";
    case UK_STATUS_OVERFLOW:
      return "extents, strides or offsets exceed the address space";
    case UK_STATUS_SPLIT_BYTE:
      return "four-bit elements that do not start or end on a byte";
    case UK_STATUS_BAD_STRIDE:
      return "output strides that do not nest, so that elements could overlap";
    case UK_STATUS_OVERLAP:
      return "output and input overlap, or one lies in inner gaps of the other";
    case UK_STATUS_NO_TILE:
      return "no tile function for this type, shape and CPU";
    case UK_STATUS_BAD_ARGUMENT:
      return "argument out of range";
    case UK_STATUS_UNKNOWN_LEVEL:
      return "no ISA level of that name on this architecture";
    case UK_STATUS_CPU_UNKNOWN:
      return "the CPU's features could not be read";
  }
  return "not a status of this library";
}

}  // extern "C"
