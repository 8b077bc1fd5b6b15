// What NVIDIA's cuBLASLt and AMD's hipBLASLt have in common. AMD's has the same functions under another prefix, and other numbers.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/gpu/driver.h"
#include "backends/gpu/vendor_library.h"
#include "ir/instruction.h"
#include "runtime/os/library.h"

namespace naru::backends::gpu {

using LtHandle = struct LtHandleTag*;
using LtOperation = struct LtOperationTag*;
using LtLayout = struct LtLayoutTag*;
using LtPreference = struct LtPreferenceTag*;

// Functions of both, by their names without the library's prefix.
#define NARU_BLASLT(F)                                                                                                                    \
  F(Create, (LtHandle*))                                                                                                                  \
  F(Destroy, (LtHandle))                                                                                                                  \
  F(MatmulDescCreate, (LtOperation*, int compute_type, int scale_type))                                                                   \
  F(MatmulDescDestroy, (LtOperation))                                                                                                     \
  F(MatmulDescSetAttribute, (LtOperation, int attribute, const void* value, size_t bytes))                                                \
  F(MatrixLayoutCreate, (LtLayout*, int type, uint64_t rows, uint64_t cols, int64_t ld))                                                  \
  F(MatrixLayoutDestroy, (LtLayout))                                                                                                      \
  F(MatrixLayoutSetAttribute, (LtLayout, int attribute, const void* value, size_t bytes))                                                 \
  F(MatmulPreferenceCreate, (LtPreference*))                                                                                              \
  F(MatmulPreferenceDestroy, (LtPreference))                                                                                              \
  F(MatmulPreferenceSetAttribute, (LtPreference, int attribute, const void* value, size_t bytes))                                         \
  F(MatmulAlgoGetHeuristic,                                                                                                               \
    (LtHandle, LtOperation, LtLayout a, LtLayout b, LtLayout c, LtLayout d, LtPreference, int wanted, void* proposals, int* found))       \
  F(Matmul, (LtHandle, LtOperation, const void* alpha, const void* a, LtLayout, const void* b, LtLayout, const void* beta, const void* c, \
             LtLayout, void* d, LtLayout, const void* algorithm, void* workspace, size_t workspace_bytes, StreamHandle))

// Numbers of data types, which are the same in both.
constexpr int kLtF32 = 0, kLtF64 = 1, kLtF16 = 2, kLtBF16 = 14;

// What the heuristic writes of each proposal behind its algorithm.
struct LtProposal {
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// A library's numbers; -1: it has no such attribute.
struct LtNumbers {
  std::string_view prefix;           // of its functions: "cublasLt"
  const char* language;              // in errors: "CUDA"
  std::span<const Status> statuses;  // 0 is success
  int allocation_failed, invalid_value, arch_mismatch, not_supported;
  size_t algorithm_bytes;
  int compute_f32, compute_f64, compute_tf32;
  int as_it_is, transposed;  // operations on a factor
  int transpose_a, transpose_b, epilogue, bias;
  int epilogue_of_bias;
  int batch_count, batch_stride;
  int most_workspace, reductions;
  uint32_t reduced_in_compute_type, reduced_any_way;  // how parts of sums may be added
  std::array<int, 4> alignments;                      // least ones of a, b, c and d
};

struct LtFunctions {
  const LtNumbers* numbers = nullptr;
  runtime::Library library;
#define NARU_DECLARE(name, parameters) int(*name) parameters = nullptr;
  NARU_BLASLT(NARU_DECLARE)
#undef NARU_DECLARE
  // Looks all functions up in `library`.
  void find(const LtNumbers& of);
};

// A product in a library's column-major terms: D (m, n) = op(A) op(B), plus `bias` along the rows of D; and everything else that the choice
// of its algorithm depends on.
struct LtMatMul {
  struct Matrix {
    bool transposed = false;
    int64_t ld = 0, batch_stride = 0;
    uint32_t alignment = 1;  // of the address, in bytes
    auto operator<=>(const Matrix&) const = default;
  };
  int type = 0;                               // of the elements
  bool tf32 = false, reduces_in_type = true;  // factors may be rounded to TF32; parts of sums may be added in the type of the elements
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Matrix a, b, d;
  uint32_t bias_alignment = 0;  // 0: no bias
  auto operator<=>(const LtMatMul&) const = default;
};

// The library's descriptors of a product. They use host memory only and need no device.
class LtDescriptors {
 public:
  // Throws RuntimeError if the library rejects one.
  LtDescriptors(const LtFunctions& lt, const LtMatMul& product);
  void set_bias(const void* bias);
  // Selects the library's best algorithm within `workspace` bytes; false if it has none. Call set_bias first: the choice depends on its
  // alignment.
  bool choose(LtHandle handle, size_t workspace);
  size_t workspace() const noexcept { return workspace_; }
  // d = a b (+ bias): enqueues the work on the stream. Returns the library's status.
  int run(LtHandle handle, const void* a, const void* b, void* d, void* workspace, StreamHandle stream) const;

 private:
  template <class T>
  using Owned = std::unique_ptr<T, int (*)(T*)>;
  void check(int status, const char* function) const;
  Owned<LtLayoutTag> layout(uint64_t rows, uint64_t cols, const LtMatMul::Matrix& matrix) const;
  template <class T, class V>
  void set(int (*function)(T*, int, const void*, size_t), T* object, int attribute, V value) const;
  bool is_wide() const noexcept { return product_.type == kLtF64; }

  static constexpr size_t kMostAlgorithmBytes = 64;
  const LtFunctions& lt_;
  const LtMatMul product_;
  Owned<LtOperationTag> operation_;
  Owned<LtLayoutTag> a_, b_, d_;
  alignas(8) std::array<std::byte, kMostAlgorithmBytes> algorithm_{};
  size_t workspace_ = 0;
};

}  // namespace naru::backends::gpu
