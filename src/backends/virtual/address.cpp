#include "backends/virtual/address.h"

#include "naru/error.h"

namespace naru::backends {
namespace {

constexpr uintptr_t kTagMask = uintptr_t{127} << kTagShift;

struct Translator {
  Device device;

  void* address(void* p, const char* what, Device d) const {
    if (!p) return nullptr;
    if ((reinterpret_cast<uintptr_t>(p) & kTagMask) != tag_of(d))
      throw RuntimeError("virtual device {}: the {} is not in its memory (address {})", d.str(), what, p);
    return to_host(p, d);
  }
  void view(ir::View& v, const char* what) const { v.data = address(v.data, what, device); }

  void operator()(ir::Map& m) const {
    for (auto& v : m.inputs) view(v, "input of an elementwise operation");
    for (auto& v : m.outputs) view(v, "result of an elementwise operation");
  }
  void operator()(ir::Reduce& r) const {
    for (auto& v : r.inputs) view(v, "input of a reduction");
    view(r.out, "result of a reduction");
  }
  void operator()(ir::ArgReduce& r) const {
    view(r.in, "input of argmax/argmin"), view(r.values, "values"), view(r.indices, "indices");
  }
  void operator()(ir::Scan& s) const { view(s.in, "input of a scan"), view(s.out, "result of a scan"); }
  void operator()(ir::Gather& g) const {
    view(g.out, "result of an indexing"), view(g.source, "source of an indexing");
    for (auto& i : g.indices) view(i.positions, "index");
  }
  void operator()(ir::Scatter& s) const {
    view(s.target, "target of an indexing"), view(s.value, "value of an indexing");
    for (auto& i : s.indices) view(i.positions, "index");
  }
  void operator()(ir::MatMul& m) const {
    m.a.data = address(m.a.data, "left matrix", device);
    m.b.data = address(m.b.data, "right matrix", device);
    m.c.data = address(m.c.data, "product", device);
    m.bias = address(const_cast<void*>(m.bias), "bias", device);
  }
  void operator()(ir::Sort& s) const {
    view(s.in, "input of a sort"), view(s.values, "sorted values"), view(s.indices, "sorted indices");
  }
  void operator()(ir::CopyBytes& c) const {
    if (!c.target_device.is_cpu()) c.target = address(c.target, "target of a copy", c.target_device);
    if (!c.source_device.is_cpu()) c.source = address(const_cast<void*>(c.source), "source of a copy", c.source_device);
  }
};

}  // namespace

void translate(ir::Instruction& instruction, Device device) {
  std::visit([&](auto& i) { Translator{device}(i); }, instruction);
}

}  // namespace naru::backends
