// More internal operators (ir/op_ids.h), each a formula that whole compositions would be of: torch.special's, and others of one kernel.
#pragma once

#include "ir/math/small_floats.h"
#include "ir/op_ids.h"

namespace naru::ir::op {

enum : OpId {
  erfcx = kCount,
  log_ndtr,
  ndtri,
  ndtr,
  entr,
  log_odds,  // (a): log(a / (1 - a))
  bessel_i0,
  bessel_i1,
  bessel_i0e,
  bessel_i1e,   // (a)
  next_after,   // (a, b)
  hard_shrink,  // (a, lambda)
  soft_shrink,  // (a, lambda)
  // One for each of kFloatFormats.
  decode_float8,                                             // (a): F32 of a U8 code
  encode_float8 = decode_float8 + ir::kFloatFormats.size(),  // (a): U8 code of an F32
  kAll = encode_float8 + ir::kFloatFormats.size()
};

}  // namespace naru::ir::op
