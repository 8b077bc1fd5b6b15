#include "render/kernel_support.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "render/code.h"

namespace naru::test {
namespace {

constexpr uint8_t kPattern = 0xa5;

template <class T>
uint64_t as_bits(T x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

template <class T>
std::vector<uint64_t> specials_of_float() {
  using L = std::numeric_limits<T>;
  std::vector<uint64_t> all;
  for (const T x : {T(0),
                    T(1),
                    T(2),
                    T(0.5),
                    T(1.5),
                    T(2.5),
                    T(3.5),
                    T(0.49999997),
                    T(1) / 3,
                    L::max(),
                    L::min(),
                    L::denorm_min(),
                    L::min() / 4,
                    L::infinity(),
                    T(127),
                    T(128),
                    T(255),
                    T(256),
                    T(32767.5),
                    T(65504),
                    T(65519),
                    T(65520),
                    T(2147483520),
                    T(2147483648.0),
                    T(4294967296.0),
                    T(9.2233715e18),
                    T(9.223372036854775808e18),
                    T(1e20),
                    T(5.9604645e-8),
                    T(2.98e-8),
                    T(6.1e-5),
                    T(16777217),
                    T(8388607.5),
                    T(1.00390625),
                    T(1.01171875),
                    T(3.3895e38),
                    L::epsilon()}) {
    all.push_back(as_bits(x));
    all.push_back(as_bits(-x));
  }
  all.push_back(as_bits(L::quiet_NaN()));
  all.push_back(as_bits(-L::quiet_NaN()));
  return all;
}

template <class T>
std::vector<uint64_t> specials_of_int() {
  using L = std::numeric_limits<T>;
  std::vector<uint64_t> all;
  for (const int64_t x : {int64_t{L::min()},
                          int64_t{L::min()} + 1,
                          int64_t{L::max()},
                          int64_t{L::max()} - 1,
                          int64_t{0},
                          int64_t{1},
                          int64_t{-1},
                          int64_t{2},
                          int64_t{-2},
                          int64_t{3},
                          int64_t{7},
                          int64_t{-7},
                          int64_t{127},
                          int64_t{128},
                          int64_t{255},
                          int64_t{256},
                          int64_t{-128},
                          int64_t{-129},
                          int64_t{32767},
                          int64_t{32768},
                          int64_t{65535},
                          int64_t{65536},
                          int64_t{16777217},
                          int64_t{0x7fffffff},
                          int64_t{0x80000000},
                          int64_t{-0x80000000LL},
                          int64_t{0xffffffff},
                          int64_t{0x100000000},
                          int64_t{0x123456789abcdef},
                          int64_t{9007199254740993},
                          int64_t{0x4000004000000001}})
    all.push_back(as_bits(static_cast<T>(x)));
  return all;
}

double value_of(DType t, const uint8_t* p) {
  const auto at = [&]<class T>(T x) {
    std::memcpy(&x, p, sizeof x);
    return x;
  };
  switch (t) {
    case DType::Bool:
    case DType::U8:
      return *p;
    case DType::I8:
      return at(int8_t{});
    case DType::I16:
      return at(int16_t{});
    case DType::I32:
      return at(int32_t{});
    case DType::I64:
      return static_cast<double>(at(int64_t{}));
    case DType::F16:
      return half_to_float(at(uint16_t{}));
    case DType::BF16:
      return bfloat_to_float(at(uint16_t{}));
    case DType::F32:
      return at(float{});
    case DType::F64:
      return at(double{});
  }
  return 0;
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes, Side side) : bytes_(bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t inside = (bytes + page - 1) / page * page + page;
  mapped_ = inside + 2 * page;
  void* mapping = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<uint8_t*>(mapping);
  if (mprotect(mapping_ + page, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  std::memset(mapping_ + page, kPattern, inside);
  data_ = side == Side::Before ? mapping_ + page : mapping_ + page + inside - bytes;
}

GuardedBuffer::~GuardedBuffer() { munmap(mapping_, mapped_); }

bool GuardedBuffer::surroundings_intact() const noexcept {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto untouched = [](const uint8_t* from, const uint8_t* to) {
    return std::all_of(from, to, [](uint8_t b) { return b == kPattern; });
  };
  return untouched(mapping_ + page, data_) && untouched(data_ + bytes_, mapping_ + mapped_ - page);
}

const std::vector<render::Isa>& isas() {
  static const std::vector<render::Isa> all = [] {
    std::vector<render::Isa> found;
    for (const render::Isa isa : render::known_isas()) {
      if (render::can_run(isa))
        found.push_back(isa);
      else
        std::printf("[   NOTE   ] %s is not tested: this processor does not have it\n", render::name_of(isa));
    }
    return found;
  }();
  return all;
}

uint64_t Bits::next() noexcept {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

const std::vector<uint64_t>& special_bits(DType t) {
  static const std::vector<std::vector<uint64_t>> all = [] {
    std::vector<std::vector<uint64_t>> v(kDTypes);
    v[static_cast<int>(DType::Bool)] = {0, 1};
    v[static_cast<int>(DType::U8)] = specials_of_int<uint8_t>();
    v[static_cast<int>(DType::I8)] = specials_of_int<int8_t>();
    v[static_cast<int>(DType::I16)] = specials_of_int<int16_t>();
    v[static_cast<int>(DType::I32)] = specials_of_int<int32_t>();
    v[static_cast<int>(DType::I64)] = specials_of_int<int64_t>();
    v[static_cast<int>(DType::F32)] = specials_of_float<float>();
    v[static_cast<int>(DType::F64)] = specials_of_float<double>();
    for (const uint64_t bits : v[static_cast<int>(DType::F32)]) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      v[static_cast<int>(DType::F16)].push_back(float_to_half(x));
      v[static_cast<int>(DType::BF16)].push_back(float_to_bfloat(x));
    }
    return v;
  }();
  return all[static_cast<int>(t)];
}

std::vector<uint8_t> mixed_elements(DType t, int64_t n, Bits& bits) {
  const size_t size = size_of(t);
  std::vector<uint8_t> all(static_cast<size_t>(n) * size);
  const auto& specials = special_bits(t);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t x = 0;
    const uint64_t kind = bits.below(4);
    const int64_t small = static_cast<int64_t>(bits.below(41)) - 20;
    if (kind == 0 || t == DType::Bool)
      x = specials[bits.below(specials.size())];
    else if (kind == 1)
      x = bits.next();
    else if (t == DType::F16)
      x = float_to_half(static_cast<float>(small) / 4);
    else if (t == DType::BF16)
      x = float_to_bfloat(static_cast<float>(small) / 4);
    else if (t == DType::F32)
      x = as_bits(static_cast<float>(small) + static_cast<float>(bits.below(1000)) / 1000);
    else if (t == DType::F64)
      x = as_bits(static_cast<double>(small) + static_cast<double>(bits.below(1000)) / 1000);
    else
      x = static_cast<uint64_t>(small);
    std::memcpy(&all[static_cast<size_t>(i) * size], &x, size);
  }
  return all;
}

bool same(DType t, const uint8_t* a, const uint8_t* b) {
  if (std::memcmp(a, b, size_of(t)) == 0) return true;
  return is_floating(t) && std::isnan(value_of(t, a)) && std::isnan(value_of(t, b));
}

std::string text_of(DType t, const uint8_t* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, size_of(t));
  char text[64];
  std::snprintf(text, sizeof text, "%.17g (0x%llx)", value_of(t, element), static_cast<unsigned long long>(bits));
  return text;
}

DType dtype_of(ir::VType t) {
  constexpr DType kOf[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};
  return kOf[static_cast<int>(t)];
}

uint64_t mixed_param(ir::VType t, Bits& bits) {
  uint64_t value = 0;
  const std::vector<uint8_t> element = mixed_elements(dtype_of(t), 1, bits);
  std::memcpy(&value, element.data(), element.size());
  return value;
}

std::vector<ir::MapFunction> compile_all(const ir::MapKernel& kernel, bool streaming) {
  std::vector<ir::MapFunction> all;
  for (const render::Isa isa : isas()) all.push_back(render::compile(kernel, isa, streaming));
  return all;
}

::testing::AssertionResult agrees(const ir::MapKernel& kernel, const std::vector<std::vector<uint8_t>>& inputs,
                                  const std::vector<uint64_t>& params, int64_t n, int64_t index0) {
  return agrees(kernel, compile_all(kernel), inputs, params, n, index0);
}

::testing::AssertionResult agrees(const ir::MapKernel& kernel, const std::vector<ir::MapFunction>& functions,
                                  const std::vector<std::vector<uint8_t>>& inputs, const std::vector<uint64_t>& params, int64_t n,
                                  int64_t index0) {
  for (const auto side : {GuardedBuffer::Side::Behind, GuardedBuffer::Side::Before}) {
    std::vector<std::unique_ptr<GuardedBuffer>> sources;
    std::vector<void*> operands;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t bytes = size_of(kernel.inputs[i].dtype) * static_cast<size_t>(kernel.inputs[i].scalar ? 1 : n);
      sources.push_back(std::make_unique<GuardedBuffer>(bytes, side));
      if (bytes > 0) std::memcpy(sources.back()->data(), inputs[i].data(), bytes);
      operands.push_back(sources.back()->data());
    }
    const auto run = [&](auto&& function) {
      std::vector<std::unique_ptr<GuardedBuffer>> targets;
      std::vector<void*> all = operands;
      for (const DType t : kernel.outputs) {
        targets.push_back(std::make_unique<GuardedBuffer>(size_of(t) * static_cast<size_t>(n), side));
        all.push_back(targets.back()->data());
      }
      function(all.data(), params.data(), n, index0);
      return targets;
    };
    const auto expected =
        run([&](void* const* o, const uint64_t* p, int64_t count, int64_t first) { ir::interpret(kernel, o, p, count, first); });
    for (size_t k = 0; k < functions.size(); ++k) {
      if (functions[k] == nullptr) return ::testing::AssertionFailure() << name_of(isas()[k]) << ": no code was made";
      const auto got = run(functions[k]);
      for (size_t o = 0; o < got.size(); ++o) {
        const DType t = kernel.outputs[o];
        for (int64_t i = 0; i < n; ++i) {
          const size_t at = static_cast<size_t>(i) * size_of(t);
          if (same(t, expected[o]->data() + at, got[o]->data() + at)) continue;
          auto failure = ::testing::AssertionFailure();
          failure << name_of(isas()[k]) << ", n = " << n << ", output " << o << " at " << i << ": " << text_of(t, got[o]->data() + at)
                  << ", the interpreter: " << text_of(t, expected[o]->data() + at) << "; inputs:";
          for (size_t j = 0; j < inputs.size(); ++j) {
            const DType it = kernel.inputs[j].dtype;
            failure << ' ' << text_of(it, inputs[j].data() + (kernel.inputs[j].scalar ? 0 : static_cast<size_t>(i) * size_of(it)));
          }
          return failure;
        }
        if (!got[o]->surroundings_intact())
          return ::testing::AssertionFailure() << name_of(isas()[k]) << ", n = " << n << ": wrote outside output " << o;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace naru::test
