#include "backends/opencl/addresses.h"

namespace naru::backends::opencl {
namespace {

struct Visitor {
  const std::function<void(void*&)>& f;

  void at(void*& p) const {
    if (p) f(p);
  }
  void at(std::vector<ir::View>& views) const {
    for (ir::View& v : views) at(v.data);
  }
  void at(std::vector<ir::IndexOperand>& indices) const {
    for (ir::IndexOperand& i : indices) at(i.positions.data);
  }
  void operator()(ir::Map& m) const { at(m.inputs), at(m.outputs); }
  void operator()(ir::Reduce& r) const { at(r.inputs), at(r.out.data); }
  void operator()(ir::ArgReduce& r) const { at(r.in.data), at(r.values.data), at(r.indices.data); }
  void operator()(ir::Scan& s) const { at(s.in.data), at(s.out.data); }
  void operator()(ir::Gather& g) const { at(g.out.data), at(g.source.data), at(g.indices); }
  void operator()(ir::Scatter& s) const { at(s.target.data), at(s.value.data), at(s.indices); }
  void operator()(ir::MatMul& m) const {
    void* bias = const_cast<void*>(m.bias);
    at(m.a.data), at(m.b.data), at(m.c.data), at(bias);
    m.bias = bias;
  }
  void operator()(ir::Sort& s) const { at(s.in.data), at(s.values.data), at(s.indices.data); }
  void operator()(ir::CopyBytes&) const {}
};

}  // namespace

void each_address(ir::Instruction& instruction, const std::function<void(void*&)>& f) { std::visit(Visitor{f}, instruction); }

}  // namespace naru::backends::opencl
