// What mlir-opt-19 does to the programs beside its ready-made passes, in MLIR's transform dialect. A
// compiler has the same in C++; pipelines.py says when each sequence runs.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.

module attributes {transform.with_named_sequence} {

  // tensor.pack and tensor.unpack have no library call of their own: they become calls of the
  // program's functions @pack_rhs, @pack_lhs and @unpack_sum, which are inlined after this.
  transform.named_sequence @call_packs(%program: !transform.any_op {transform.readonly}) {
    // The RHS is stored K x N and packed transposed, which tells its packs from those of the LHS.
    %rhs_packs = transform.structured.match ops{["tensor.pack"]}
        attributes {outer_dims_perm = array<i64: 1, 0>} in %program
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %rhs_packs : !transform.any_op {
    ^bb0(%pack: !transform.any_op):
      %operands = transform.get_operand %pack[0, 1] : (!transform.any_op) -> !transform.any_value
      %tiles = transform.get_result %pack[0] : (!transform.any_op) -> !transform.any_value
      transform.func.cast_and_call @pack_rhs(%operands) -> %tiles before %pack {
        transform.type_conversion.tensor.cast_shape_dynamic_dims ignore_dynamic_info
      } : (!transform.any_op, !transform.any_value, !transform.any_value) -> !transform.any_op
    }
    transform.apply_dce to %program : !transform.any_op
    %lhs_packs = transform.structured.match ops{["tensor.pack"]} in %program
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %lhs_packs : !transform.any_op {
    ^bb0(%pack: !transform.any_op):
      %operands = transform.get_operand %pack[0, 1] : (!transform.any_op) -> !transform.any_value
      %tiles = transform.get_result %pack[0] : (!transform.any_op) -> !transform.any_value
      transform.func.cast_and_call @pack_lhs(%operands) -> %tiles before %pack {
        transform.type_conversion.tensor.cast_shape_dynamic_dims ignore_dynamic_info
      } : (!transform.any_op, !transform.any_value, !transform.any_value) -> !transform.any_op
    }
    %unpacks = transform.structured.match ops{["tensor.unpack"]} in %program
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %unpacks : !transform.any_op {
    ^bb0(%unpack: !transform.any_op):
      %operands = transform.get_operand %unpack[0, 1] : (!transform.any_op) -> !transform.any_value
      %matrix = transform.get_result %unpack[0] : (!transform.any_op) -> !transform.any_value
      transform.func.cast_and_call @unpack_sum(%operands) -> %matrix before %unpack {
        transform.type_conversion.tensor.cast_shape_dynamic_dims ignore_dynamic_info
      } : (!transform.any_op, !transform.any_value, !transform.any_value) -> !transform.any_op
    }
    transform.apply_dce to %program : !transform.any_op
    transform.yield
  }

  // All of linalg but mmt4d becomes loops, so that --convert-linalg-to-std finds nothing else.
  transform.named_sequence @loops_but_mmt4d(%program: !transform.any_op {transform.readonly}) {
    %ops = transform.structured.match ops{["linalg.fill", "linalg.generic"]} in %program
        : (!transform.any_op) -> !transform.any_op
    transform.structured.convert_to_loops %ops : (!transform.any_op) -> !transform.any_op
    transform.yield
  }

  // Without the library: pack is a pad and a transpose, unpack a transpose and a slice.
  transform.named_sequence @lower_packs(%program: !transform.any_op {transform.readonly}) {
    %packs = transform.structured.match ops{["tensor.pack"]} in %program
        : (!transform.any_op) -> !transform.op<"tensor.pack">
    transform.foreach %packs : !transform.op<"tensor.pack"> {
    ^bb0(%pack: !transform.op<"tensor.pack">):
      transform.structured.lower_pack %pack : (!transform.op<"tensor.pack">)
          -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">,
              !transform.op<"linalg.transpose">)
    }
    %unpacks = transform.structured.match ops{["tensor.unpack"]} in %program
        : (!transform.any_op) -> !transform.op<"tensor.unpack">
    transform.foreach %unpacks : !transform.op<"tensor.unpack"> {
    ^bb0(%unpack: !transform.op<"tensor.unpack">):
      transform.structured.lower_unpack %unpack : (!transform.op<"tensor.unpack">)
          -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">,
              !transform.op<"tensor.collapse_shape">, !transform.op<"tensor.extract_slice">)
    }
    transform.yield
  }

  // Without the library: mmt4d is three loops around one step of one tile, which is unrolled into
  // vector operations.
  transform.named_sequence @vectorize_mmt4d(%program: !transform.any_op {transform.readonly}) {
    %mmt4ds = transform.structured.match ops{["linalg.mmt4d"]} in %program
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %mmt4ds : !transform.any_op {
    ^bb0(%mmt4d: !transform.any_op):
      %step, %loops:3 = transform.structured.tile_using_for %mmt4d tile_sizes [1, 1, 1]
          : (!transform.any_op)
          -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
      // The tile is M0 x N0 x K0, and M1, N1, K1 are no more: of what remains, the vectorizer makes
      // a contraction of the rank that has an efficient lowering.
      %generic = transform.structured.generalize %step : (!transform.any_op) -> !transform.any_op
      transform.apply_patterns to %loops#0 {
        transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
        transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
      } : !transform.any_op
      %flat = transform.structured.match ops{["linalg.generic"]} in %loops#0
          : (!transform.any_op) -> !transform.any_op
      transform.structured.vectorize %flat : !transform.any_op
      transform.apply_patterns to %loops#0 {
        transform.apply_patterns.vector.reduction_to_contract
        transform.apply_patterns.vector.transfer_permutation_patterns
        transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
        transform.apply_patterns.canonicalization
      } : !transform.any_op
      // The tile of the accumulator becomes a value that the loop over K1 carries.
      transform.loop.hoist_loop_invariant_subsets %loops#2 : !transform.any_op
    }
    transform.yield
  }

  // As --one-shot-bufferize, but with loops for copies, not calls of MLIR's runtime library.
  transform.named_sequence @bufferize(%program: !transform.any_op {transform.consumed}) {
    transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %program
        {bufferize_function_boundaries = true, memcpy_op = "linalg.copy"}
        : (!transform.any_op) -> !transform.any_op
    transform.yield
  }

  // On buffers: the accumulator's loads and stores leave the loop over K1, and the contractions
  // become fused multiply-adds or products of vectors.
  transform.named_sequence @lower_contractions(%program: !transform.any_op {transform.readonly}) {
    %functions = transform.structured.match ops{["func.func"]} in %program
        : (!transform.any_op) -> !transform.any_op
    %hoisted = transform.structured.hoist_redundant_vector_transfers %functions
        : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %hoisted {
      transform.apply_patterns.vector.lower_contraction lowering_strategy = outerproduct
      transform.apply_patterns.vector.lower_outerproduct
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.yield
  }
}
