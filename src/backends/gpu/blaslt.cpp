#include "backends/gpu/blaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "naru/error.h"

namespace naru::backends::gpu {
namespace {

template <class T>
std::unique_ptr<T, int (*)(T*)> owned(T* object, int (*destroy)(T*)) {
  return {object, destroy};
}

}  // namespace

void LtFunctions::find(const LtNumbers& of) {
  numbers = &of;
#define NARU_FIND(name, parameters) library.find(name, (std::string(of.prefix) + #name).c_str());
  NARU_BLASLT(NARU_FIND)
#undef NARU_FIND
}

void LtDescriptors::check(int status, const char* function) const {
  const LtNumbers& n = *lt_.numbers;
  if (status != 0) throw RuntimeError("{} error: {} when calling `{}{}`", n.language, status_name(n.statuses, status), n.prefix, function);
}

template <class T, class V>
void LtDescriptors::set(int (*function)(T*, int, const void*, size_t), T* object, int attribute, V value) const {
  const LtNumbers& n = *lt_.numbers;
  if (const int status = function(object, attribute, &value, sizeof value); status != 0)
    throw RuntimeError("{} error: {} when setting attribute {} of a product for {}", n.language, status_name(n.statuses, status), attribute,
                       n.prefix);
}

LtDescriptors::Owned<LtLayoutTag> LtDescriptors::layout(uint64_t rows, uint64_t cols, const LtMatMul::Matrix& matrix) const {
  if (matrix.transposed) std::swap(rows, cols);
  LtLayout made = nullptr;
  check(lt_.MatrixLayoutCreate(&made, product_.type, rows, cols, matrix.ld), "MatrixLayoutCreate");
  auto layout = owned(made, lt_.MatrixLayoutDestroy);
  if (product_.batch != 1) {
    set(lt_.MatrixLayoutSetAttribute, made, lt_.numbers->batch_count, static_cast<int32_t>(product_.batch));
    set(lt_.MatrixLayoutSetAttribute, made, lt_.numbers->batch_stride, matrix.batch_stride);
  }
  return layout;
}

LtDescriptors::LtDescriptors(const LtFunctions& lt, const LtMatMul& p)
    : lt_(lt), product_(p), operation_(nullptr, lt.MatmulDescDestroy), a_(nullptr, nullptr), b_(nullptr, nullptr), d_(nullptr, nullptr) {
  const LtNumbers& n = *lt.numbers;
  const int compute = is_wide() ? n.compute_f64 : p.tf32 ? n.compute_tf32 : n.compute_f32;
  LtOperation made = nullptr;
  check(lt.MatmulDescCreate(&made, compute, is_wide() ? kLtF64 : kLtF32), "MatmulDescCreate");
  operation_.reset(made);
  const auto operation = [&](int attribute, int32_t value) { set(lt.MatmulDescSetAttribute, made, attribute, value); };
  operation(n.transpose_a, p.a.transposed ? n.transposed : n.as_it_is);
  operation(n.transpose_b, p.b.transposed ? n.transposed : n.as_it_is);
  if (p.bias_alignment) operation(n.epilogue, n.epilogue_of_bias);
  const auto u = [](int64_t i) { return static_cast<uint64_t>(i); };
  a_ = layout(u(p.m), u(p.k), p.a), b_ = layout(u(p.k), u(p.n), p.b), d_ = layout(u(p.m), u(p.n), p.d);
}

void LtDescriptors::set_bias(const void* bias) { set(lt_.MatmulDescSetAttribute, operation_.get(), lt_.numbers->bias, bias); }

bool LtDescriptors::choose(LtHandle handle, size_t workspace) {
  constexpr int kMost = 4;
  const LtNumbers& n = *lt_.numbers;
  LtPreference made = nullptr;
  check(lt_.MatmulPreferenceCreate(&made), "MatmulPreferenceCreate");
  const auto preference = owned(made, lt_.MatmulPreferenceDestroy);
  const auto prefer = [&](int attribute, auto value) {
    if (attribute >= 0) set(lt_.MatmulPreferenceSetAttribute, made, attribute, value);
  };
  prefer(n.most_workspace, uint64_t{workspace});
  prefer(n.reductions, product_.reduces_in_type ? n.reduced_any_way : n.reduced_in_compute_type);
  const uint32_t alignments[] = {product_.a.alignment, product_.b.alignment, product_.d.alignment, product_.d.alignment};
  for (size_t i = 0; i < n.alignments.size(); ++i) prefer(n.alignments[i], alignments[i]);
  // Ordered by expected time; some may prove unusable.
  const size_t each = n.algorithm_bytes + sizeof(LtProposal);
  std::vector<uint64_t> found(kMost * each / sizeof(uint64_t));
  int count = 0;
  const int status =
      lt_.MatmulAlgoGetHeuristic(handle, operation_.get(), a_.get(), b_.get(), d_.get(), d_.get(), made, kMost, found.data(), &count);
  if (status == n.not_supported || status == n.invalid_value || status == n.arch_mismatch) return false;
  check(status, "MatmulAlgoGetHeuristic");
  const auto* const proposals = reinterpret_cast<const std::byte*>(found.data());
  for (int i = 0; i < std::clamp(count, 0, kMost); ++i) {
    const std::byte* const algorithm = proposals + static_cast<size_t>(i) * each;
    LtProposal proposal;
    std::memcpy(&proposal, algorithm + n.algorithm_bytes, sizeof proposal);
    if (proposal.state != 0 || proposal.workspace > workspace) continue;
    std::memcpy(algorithm_.data(), algorithm, n.algorithm_bytes);
    workspace_ = proposal.workspace;
    return true;
  }
  return false;
}

int LtDescriptors::run(LtHandle handle, const void* a, const void* b, void* d, void* workspace, StreamHandle stream) const {
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const void *const alpha = is_wide() ? static_cast<const void*>(&one64) : &one, *const beta =
                                                                                     is_wide() ? static_cast<const void*>(&zero64) : &zero;
  // With beta = 0, the contents of C = D are not read.
  return lt_.Matmul(handle, operation_.get(), alpha, a, a_.get(), b, b_.get(), beta, d, d_.get(), d, d_.get(), algorithm_.data(), workspace,
                    workspace_, stream);
}

}  // namespace naru::backends::gpu
