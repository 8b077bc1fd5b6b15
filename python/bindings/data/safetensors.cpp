// safetensors files; python/naru/safetensors.py has the public API.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "naru/io.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

SafeTensors from_python(const nb::list& tensors, const Texts& metadata) {
  SafeTensors s;
  for (const nb::handle item : tensors) {
    const auto pair = nb::cast<nb::tuple>(item);
    if (pair.size() != 2 || !nb::isinstance<nb::str>(pair[0])) throw TypeError("safetensors: wanted pairs of a name and a tensor");
    s.tensors.emplace_back(std::string(utf8(nb::handle(pair[0]).ptr())),
                           tensor_or_throw(nb::handle(pair[1]).ptr(), "safetensors: a value"));
  }
  s.metadata.insert(metadata.begin(), metadata.end());
  return s;
}

nb::tuple pair_of(const SafeTensors& s) {
  nb::list tensors;
  for (const auto& [name, t] : s.tensors) tensors.append(nb::make_tuple(name, nb::steal(wrap(t))));
  return nb::make_tuple(tensors, Texts(s.metadata.begin(), s.metadata.end()));
}

}  // namespace

void define_safetensors(nb::module_& m) {
  m.def("_load_safetensors", [](const std::string& path) { return pair_of(load_safetensors(path)); });
  m.def("_parse_safetensors", [](const nb::bytes& bytes) { return pair_of(parse_safetensors({bytes.c_str(), bytes.size()})); });
  m.def("_save_safetensors", [](const std::string& path, const nb::list& tensors, const Texts& metadata) {
    const SafeTensors s = from_python(tensors, metadata);
    GilRelease scope;
    save_safetensors(path, s);
  });
  m.def("_to_safetensors", [](const nb::list& tensors, const Texts& metadata) {
    const std::string bytes = to_safetensors(from_python(tensors, metadata));
    return nb::bytes(bytes.data(), bytes.size());
  });
}

}  // namespace naru::py
