#include "ir/addresses.h"

#include "ir/op_ids.h"

namespace naru::ir {
namespace {

struct Walker {
  const std::function<void(void*&, const char*)>& f;

  void address(void*& p, const char* what) const {
    if (p) f(p, what);
  }
  void view(View& v, const char* what) const { address(v.data, what); }

  void operator()(Map& m) const {
    for (auto& v : m.inputs) view(v, "input of an elementwise operation");
    for (auto& v : m.outputs) view(v, "result of an elementwise operation");
  }
  void operator()(Reduce& r) const {
    for (auto& v : r.inputs) view(v, "input of a reduction");
    view(r.out, "result of a reduction");
  }
  void operator()(ArgReduce& r) const { view(r.in, "input of argmax/argmin"), view(r.values, "values"), view(r.indices, "indices"); }
  void operator()(Scan& s) const { view(s.in, "input of a scan"), view(s.out, "result of a scan"); }
  void operator()(Gather& g) const {
    view(g.out, "result of an indexing"), view(g.source, "source of an indexing");
    for (auto& i : g.indices) view(i.positions, "index");
  }
  void operator()(Scatter& s) const {
    view(s.target, "target of an indexing"), view(s.value, "value of an indexing");
    for (auto& i : s.indices) view(i.positions, "index");
  }
  void operator()(MatMul& m) const {
    address(m.a.data, "left matrix"), address(m.b.data, "right matrix"), address(m.c.data, "product");
    void* bias = const_cast<void*>(m.bias);
    address(bias, "bias");
    m.bias = bias;
  }
  void operator()(Sort& s) const { view(s.in, "input of a sort"), view(s.values, "sorted values"), view(s.indices, "sorted indices"); }
  void operator()(CopyBytes&) const {}
  void operator()(UserKernel& k) const {
    for (void*& p : k.memory) address(p, "argument of a kernel");
  }
  void operator()(RowFused& w) const {
    for (RowFused::Part& p : w.parts) {
      std::visit(*this, p.work);
      address(p.kept, "values of a reduction");
    }
  }
};

constexpr const char* kReductions[] = {"sum", "prod", "max", "min", "any", "all"};  // in the order of ReduceOp
constexpr const char *kScans[] = {"cumsum", "cumprod"}, *kBest[] = {"argmin", "argmax"};
constexpr const char kProduct[] = "matmul", kSort[] = "sort";

struct Namer {
  const std::function<void(const char*)>& f;

  void nodes(const Program& p) const {
    for (int i = 0; i < p.nodes_count; ++i) f(op_table()[p.nodes[i].op].name);
  }
  void operator()(const Map& m) const { nodes(m.program); }
  void operator()(const Reduce& r) const {
    nodes(r.program);
    f(kReductions[static_cast<int>(r.op)]);
  }
  void operator()(const ArgReduce& r) const { f(kBest[r.greatest]); }
  void operator()(const Scan& s) const { f(kScans[s.op == ReduceOp::Prod]); }
  void operator()(const Gather& g) const { f(g.op); }
  void operator()(const Scatter& s) const { f(s.op); }
  void operator()(const MatMul&) const { f(kProduct); }
  void operator()(const Sort&) const { f(kSort); }
  void operator()(const CopyBytes&) const {}
  void operator()(const UserKernel&) const { f("kernel"); }
  void operator()(const RowFused& w) const {
    for (const RowFused::Part& p : w.parts) std::visit(*this, p.work);
  }
};

}  // namespace

void each_address(Instruction& instruction, const std::function<void(void*&, const char*)>& f) { std::visit(Walker{f}, instruction); }

void each_name(const Instruction& instruction, const std::function<void(const char*)>& f) { std::visit(Namer{f}, instruction); }

std::vector<OperatorName> operator_names() {
  std::vector<OperatorName> all;
  for (size_t i = 0; i < op_table().size(); ++i)
    if (op_table()[i].expr) all.push_back({op_table()[i].name, i < op::kTable ? "elementwise" : i < op::copy ? "derivative" : "internal"});
  const auto add = [&](std::span<const char* const> names, const char* family) {
    for (const char* name : names) all.push_back({name, family});
  };
  add(kReductions, "reduction"), add(kBest, "reduction"), add(kScans, "scan"), add(kIndexNames, "index");
  all.push_back({kSort, "sort"}), all.push_back({kProduct, "product"});
  return all;
}

}  // namespace naru::ir
