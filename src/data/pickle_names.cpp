#include "data/pickle_names.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace naru::data {
namespace {

constexpr StorageName kStorages[] = {
    {"FloatStorage", DType::F32},         {"DoubleStorage", DType::F64},      {"HalfStorage", DType::F16},
    {"BFloat16Storage", DType::BF16},     {"LongStorage", DType::I64},        {"IntStorage", DType::I32},
    {"ShortStorage", DType::I16},         {"CharStorage", DType::I8},         {"ByteStorage", DType::U8},
    {"BoolStorage", DType::Bool},         {"ComplexHalfStorage", kComplex32}, {"ComplexFloatStorage", kComplex64},
    {"ComplexDoubleStorage", kComplex128}};

constexpr std::string_view kGlobals[] = {"collections OrderedDict",
                                         "collections defaultdict",
                                         "builtins dict",
                                         "__builtin__ dict",
                                         "torch._utils _rebuild_tensor",
                                         "torch._utils _rebuild_tensor_v2",
                                         "torch._utils _rebuild_tensor_v3",
                                         "torch._utils _rebuild_meta_tensor_no_storage",
                                         "torch._utils _rebuild_parameter",
                                         "torch._utils _rebuild_parameter_with_state",
                                         "torch Size",
                                         "torch device",
                                         "_codecs encode",
                                         "torch.storage UntypedStorage"};

}  // namespace

const StorageName* storage_called(std::string_view name) {
  for (const StorageName& s : kStorages)
    if (name == s.name) return &s;
  return nullptr;
}
const StorageName* storage_of(DType dtype) {
  for (const StorageName& s : kStorages)
    if (dtype == s.dtype) return &s;
  return nullptr;
}

std::optional<DType> dtype_called(std::string_view name) {
  for (const DType t : kAllDTypes)
    if (name == name_of(t)) return t;
  return {};
}

bool is_known_global(std::string_view global) {
  if (std::find(std::begin(kGlobals), std::end(kGlobals), global) != std::end(kGlobals)) return true;
  const size_t space = global.find(' ');
  const std::string_view module = global.substr(0, space), name = global.substr(space + 1);
  return (module == "torch" || module == "torch.cuda") && (storage_called(name) || dtype_called(name) || name == "UntypedStorage");
}

std::string latin1_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto u = static_cast<uint8_t>(c);
    if (u < 0x80)
      text += c;
    else
      text.append({static_cast<char>(0xC0 | u >> 6), static_cast<char>(0x80 | (u & 0x3F))});
  }
  return text;
}

std::optional<std::string> latin1_bytes(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c < 0x80) {
      bytes += text[i];
    } else {
      if ((c != 0xC2 && c != 0xC3) || i + 1 >= text.size()) return {};
      bytes += static_cast<char>((c & 3) << 6 | (text[++i] & 0x3F));
    }
  }
  return bytes;
}

}  // namespace naru::data
