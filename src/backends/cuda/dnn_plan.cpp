#include "backends/cuda/dnn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

DnnNotes notes_of(const Cudnn& f, const DnnDescriptor& configuration, const DnnCheck& check) {
  DnnDescriptor engine(f, CUDNN_BACKEND_ENGINE_DESCRIPTOR, check);
  cudnnBackendDescriptor_t to = engine.get();
  int64_t count = 0;
  check(f.cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &to),
        "cudnnBackendGetAttribute");
  int notes[32] = {};
  count = 0;
  check(f.cudnnBackendGetAttribute(to, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, std::size(notes), &count, notes),
        "cudnnBackendGetAttribute");
  DnnNotes found;
  for (int64_t i = 0; i < std::clamp<int64_t>(count, 0, std::size(notes)); ++i)
    if (notes[i] >= 0 && notes[i] < 32) found.bits |= uint32_t{1} << notes[i];
  return found;
}

}  // namespace

bool is_refusal(int status) noexcept {
  return status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 || status / 1000 == CUDNN_STATUS_BAD_PARAM / 1000;
}

void check_status(int status, const char* function, const Device& device, const std::string& what, const char* advice) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string text =
      fmt::format("cuDNN error: {}, when calling `{}` on {} for {}", gpu::status_name<Cudnn>(status), function, device.str(), what);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED || status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
    throw OutOfMemoryError(text + ". Use smaller tensors, or free some");
  throw RuntimeError("{}. {}", text, advice);
}

bool DnnEngine::usable(const Cudnn& f, const DnnTarget& place, const DnnCheck& check) {
  if (refused_ || plan_) return !refused_;
  DnnDescriptor plan(f, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, check);
  if (place.properties)
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *place.properties, check);
  else
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &place.handle, check);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine_, check);
  const int status = f.cudnnBackendFinalize(plan.get());
  if (is_refusal(status)) {
    refused_ = true;
    return false;
  }
  check(status, "cudnnBackendFinalize");
  int64_t bytes = 0, one = 0;
  check(f.cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one, &bytes),
        "cudnnBackendGetAttribute");
  workspace_ = static_cast<size_t>(std::max<int64_t>(bytes, 0));
  plan_ = std::move(plan);
  return true;
}

bool DnnEngine::run(const Cudnn& f, cudnnHandle_t handle, std::span<const int64_t> numbers, std::span<void* const> addresses,
                    void* workspace, const DnnCheck& check) {
  DnnDescriptor pack(f, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, check);
  const auto count = static_cast<int64_t>(numbers.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, numbers.data(), check);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses.data(), check);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace, check);
  pack.finish(check);
  const int status = f.cudnnBackendExecute(handle, plan_->get(), pack.get());
  refused_ = is_refusal(status);
  if (!refused_) check(status, "cudnnBackendExecute");
  return !refused_;
}

std::vector<DnnEngine> engines_of(const Cudnn& f, const DnnTarget& place, const DnnDescriptor& graph, const DnnCheck& check) {
  std::vector<DnnEngine> ways;
  for (const int mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    DnnDescriptor proposals(f, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, check);
    proposals.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph, check);
    proposals.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode, check);
    if (place.properties) proposals.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *place.properties, check);
    int64_t count = 0;
    const auto get = [&](int64_t wanted, void* to) {
      check(f.cudnnBackendGetAttribute(proposals.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, wanted, &count, to),
            "cudnnBackendGetAttribute");
    };
    const int status = f.cudnnBackendFinalize(proposals.get());
    if (is_refusal(status)) continue;
    check(status, "cudnnBackendFinalize");
    get(0, nullptr);
    std::vector<DnnDescriptor> engines;
    std::vector<cudnnBackendDescriptor_t> all;
    for (int64_t i = 0; i < count; ++i) {
      engines.emplace_back(f, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, check);
      all.push_back(engines.back().get());
    }
    if (engines.empty()) continue;
    get(count, all.data());
    const size_t made = std::min(engines.size(), static_cast<size_t>(std::max<int64_t>(count, 0)));
    for (DnnDescriptor& engine : std::span(engines).first(made)) {
      const DnnNotes notes = notes_of(f, engine, check);
      ways.emplace_back(std::move(engine), notes);
    }
  }
  return ways;
}

}  // namespace naru::backends::cuda
