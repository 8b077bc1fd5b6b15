#include "render/c/map_body.h"

#include <fmt/format.h>

#include <vector>

#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {

std::string MapBody::of_one(const std::string& index, const std::string& indent, const std::function<std::string(int)>& read) const {
  const ir::MapKernel kernel = program.lower();
  const auto element = [&](uint64_t slot) {
    const int k = static_cast<int>(slot);
    const std::string name = read ? read(k) : std::string();
    return name.empty() ? fmt::format("m{}[{}]", k, place(k)) : name;
  };
  const Leaves leaves{[&](uint64_t slot, DType type) { return loaded(type, element(slot)); }, param_text, index};
  std::string text = expressions(kernel.graph, kernel.results, leaves, target, "v", indent);
  // A result may overwrite an input that another one copies, so with several all are read before one is stored.
  std::string stores;
  const bool several = kernel.results.size() > 1;
  for (size_t i = 0; i < kernel.results.size(); ++i) {
    const int k = program.inputs_count + static_cast<int>(i);
    const std::string value = result_to_store(kernel, i, "v", element);
    if (several) text += fmt::format("{}const {} x{} = {};\n", indent, stored(kernel.outputs[i]), i, value);
    stores += fmt::format("{}m{}[{}] = {};\n", indent, k, place(k), several ? fmt::format("x{}", i) : value);
  }
  return text + stores;
}

std::string MapBody::of_four(const std::string& index, const std::function<bool(int)>& repeats) const {
  const ir::MapKernel kernel = program.lower();
  constexpr const char* kParts = "xyzw";
  std::string text;
  for (int k = 0; k < program.inputs_count; ++k)
    if (!repeats(k))
      text += fmt::format("    const {0}x4 t{1} = *(GLOBAL const {0}x4*)(m{1} + {2});\n",
                          stored(program.inputs[static_cast<size_t>(k)].dtype), k, place(k));
  std::vector<std::string> results(kernel.results.size());
  for (int part = 0; part < 4; ++part) {
    const auto element = [&](uint64_t slot) {
      const int k = static_cast<int>(slot);
      return repeats(k) ? fmt::format("m{}[{}]", k, place(k)) : fmt::format("t{}.{}", k, kParts[part]);
    };
    const auto input = [&](uint64_t slot, DType type) { return loaded(type, element(slot)); };
    const std::string prefix = fmt::format("v{}_", kParts[part]);
    // (`|` tells the compiler that the index is a multiple of four.)
    text += expressions(kernel.graph, kernel.results, {input, param_text, fmt::format("({} | {})", index, part)}, target, prefix, "    ");
    for (size_t i = 0; i < results.size(); ++i) results[i] += ", " + result_to_store(kernel, i, prefix, element);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const int k = program.inputs_count + static_cast<int>(i);
    text += fmt::format("    *(GLOBAL {0}x4*)(m{1} + {2}) = MAKE4({0}{3});\n", stored(kernel.outputs[i]), k, place(k), results[i]);
  }
  return text;
}

}  // namespace naru::render::c
