// Random words (Philox) and the distributions built on them.
#include "ir/math/detail.h"

namespace naru::ir {
namespace {
using namespace detail;

V low_word(V x) { return convert(x, DType::I32); }
V high_word(V x) { return convert(shr_unsigned(x, 32), DType::I32); }

// The top `count` bits of a word as a float of `type`.
V top_bits(V word, int count, VType type) { return convert(shr_unsigned(word, 32 - count), type == VType::F32 ? DType::F32 : DType::F64); }

// 53 bits from two words, as an integer below 2^53.
V wide_bits(V high, V low) { return fma(top_bits(high, 27, VType::F64), 0x1p26, top_bits(low, 26, VType::F64)); }

// Of a counter in two words.
Words philox_of(V c0, V c1, V offset, V key) {
  V c2 = low_word(offset), c3 = high_word(offset);
  V k0 = low_word(key), k1 = high_word(key);
  const V m0 = c0.lit_bits(0xd2511f53u), m1 = c0.lit_bits(0xcd9e8d57u);
  for (int round = 0; round < 10; ++round) {
    const V high0 = mul_hi_unsigned(m0, c0), low0 = m0 * c0;
    const V high1 = mul_hi_unsigned(m1, c2), low1 = m1 * c2;
    c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
    k0 = k0 + k0.lit_bits(0x9e3779b9u), k1 = k1 + k1.lit_bits(0xbb67ae85u);
  }
  return {{c0, c1, c2, c3}};
}

// The words that the elements from the multiple of 4 up to i on share.
Words shared_words(V i, V offset, V key) {
  const V low = low_word(i), high = high_word(i);
  return philox_of(shr_unsigned(low, 2) | shl(high, 30), shr_unsigned(high, 2), offset, key);
}

}  // namespace

Words philox(V counter, V offset, V key) { return philox_of(low_word(counter), high_word(counter), offset, key); }

V uniform01(V i, V key, V offset, VType type) {
  if (type == VType::F64) {
    const Words words = philox(i, offset, key);
    return wide_bits(words.w[0], words.w[1]) * 0x1p-53;
  }
  const Words words = shared_words(i, offset, key);
  const V part = low_word(i), odd = bit_set(part, 0);
  const V word = where(bit_set(part, 1), where(odd, words.w[3], words.w[2]), where(odd, words.w[1], words.w[0]));
  return top_bits(word, 24, type) * 0x1p-24;
}

// sqrt(-2 log u) cos(2 pi v) with u in (0, 1], v in [0, 1).
V normal01(V i, V key, V offset, VType type) {
  if (type == VType::F64) {
    const Words words = philox(i, offset, key);
    const V u = (wide_bits(words.w[0], words.w[1]) + 1) * 0x1p-53, v = wide_bits(words.w[2], words.w[3]) * 0x1p-53;
    return sqrt(log_of_normal(u) * -2) * cos_of_turn(v);
  }
  const Words words = shared_words(i, offset, key);
  const V part = low_word(i), second = bit_set(part, 1);
  // 31 bits reach further into the tail than 24 would.
  const V u = (top_bits(where(second, words.w[2], words.w[0]), 31, type) + 1) * 0x1p-31;
  const V v = top_bits(where(second, words.w[3], words.w[1]), 24, type) * 0x1p-24;
  // Odd elements take the sine, which is the cosine a quarter earlier (exact: v is a multiple of 2^-24).
  return sqrt(log_of_normal(u) * -2) * cos_of_turn(v - where(bit_set(part, 0), v.lit(0.25), v.lit(0)));
}

V exponential_of(V u) { return -log_of_normal(1.0 - u); }

}  // namespace naru::ir
