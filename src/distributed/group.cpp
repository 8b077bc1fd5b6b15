// ProcessGroup: collectives on tensors, implemented with the engine's collectives on host memory.
#include "naru/distributed/group.h"

#include <algorithm>

#include "autograd/history/history.h"
#include "core/tensor_impl.h"
#include "distributed/collectives.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "runtime/os/fork.h"

namespace naru::distributed {

// --- Work

Work::Work() : generation_(runtime::fork_generation()) {}

bool Work::in_child() const noexcept { return generation_ != runtime::fork_generation(); }

bool Work::wait(std::optional<Milliseconds> timeout) {
  if (!is_completed()) {
    if (in_child()) refuse_in_child();
    const runtime::InterruptWatch watch;
    const Deadline deadline = timeout ? after(*timeout) : Deadline::max();
    std::unique_lock lock(mutex_);
    while (!is_completed()) {
      const int left = milliseconds_until(deadline, runtime::kInterruptMilliseconds);
      if (left == 0) return false;
      changed_.wait_for(lock, Milliseconds(left));
      if (watch.interrupted()) throw runtime::Interrupted("waiting for an operation between processes was interrupted");
    }
  }
  if (error_) std::rethrow_exception(error_);
  return true;
}

void Work::then(std::function<void()> f) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_completed()) {
      then_.push_back(std::move(f));
      return;
    }
  }
  f();
}

void Work::finish(std::exception_ptr error, int source) {
  std::vector<std::function<void()>> then;
  {
    const std::lock_guard lock(mutex_);
    if (is_completed()) return;
    error_ = std::move(error), source_ = source;
    then.swap(then_);
    done_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  for (const auto& f : then) f();
}

// --- tensors in host memory

namespace {

enum class Use { Read, Write, Both };

// A tensor's elements in contiguous host memory: the tensor's own memory if it is a contiguous cpu tensor, else a copy.
class Lent {
 public:
  Lent(const Tensor& t, const char* what, Use use) : tensor_(t), use_(use) {
    ops::require_defined(t, what, "tensor");
    if (ops::has_sparse_form(t)) throw RuntimeError("{}: sparse tensors can't be exchanged between processes; use to_dense()", what);
    if (t.device().is_meta()) throw RuntimeError("{}: a tensor on the meta device has no elements to exchange", what);
    host_ = t.detach();
    if (!own()) {
      const NoGrad off;
      const Device cpu(DeviceType::Cpu);
      host_ = use == Use::Write ? empty(t.sizes(), Options(t.dtype(), cpu)) : host_.to(cpu).contiguous();
      if (use != Use::Write && host_.data_ptr() == (t.device().is_cpu() ? t.data_ptr() : nullptr)) host_ = host_.clone();
    } else if (use != Use::Read) {
      autograd::before_write(t);
      ops::bump_version(t);
    }
    block_ = {static_cast<char*>(host_.data_ptr()), static_cast<size_t>(t.numel()), t.dtype(), t.sizes()};
  }
  const Block& block() const noexcept { return block_; }
  // If block() is a copy, copies it back to the tensor. Does nothing for Use::Read.
  void give_back() const {
    if (use_ == Use::Read || own()) return;
    const NoGrad off;
    tensor_.copy_(host_);
  }

 private:
  bool own() const { return tensor_.device().is_cpu() && tensor_.is_contiguous(); }
  Tensor tensor_, host_;
  Use use_;
  Block block_;
};

using LentList = std::vector<Lent>;

LentList lend(const std::vector<Tensor>& tensors, const char* what, Use use) {
  LentList all;
  for (const Tensor& t : tensors) all.emplace_back(t, what, use);
  return all;
}
std::vector<Block> blocks(const LentList& lent) {
  std::vector<Block> all;
  for (const Lent& l : lent) all.push_back(l.block());
  return all;
}
void give_back(const LentList& lent) {
  for (const Lent& l : lent) l.give_back();
}

void require_rank(int rank, int size, const char* what, const char* name) {
  if (rank < 0 || rank >= size) throw ValueError("{}: {} must be a rank of the group, 0 to {}, got {}", what, name, size - 1, rank);
}

// Checks that `list` has one tensor per rank, each with the dtype and number of elements of `model`.
void require_like(const std::vector<Tensor>& list, const Tensor& model, int size, const char* what, const char* name) {
  ops::require_defined(model, what, "tensor");
  if (list.size() != static_cast<size_t>(size))
    throw ValueError("{}: {} must hold one tensor for each of the group's {} ranks, got {}", what, name, size, list.size());
  for (const Tensor& t : list) {
    ops::require_defined(t, what, name);
    if (t.dtype() != model.dtype())
      throw TypeError("{}: Tensors must have identical type: {} has {} and {}", what, name, naru::name_of(t.dtype()),
                      naru::name_of(model.dtype()));
    if (t.numel() != model.numel())
      throw ValueError("{}: Tensors must have equal sizes: {} has {} elements where {} are wanted", what, name, t.numel(), model.numel());
  }
}

}  // namespace

// --- ProcessGroup

ProcessGroup::ProcessGroup(std::shared_ptr<Store> store, int rank, int size, Milliseconds timeout, const std::string& engine,
                           OnDevices on_devices) {
  if (!store) throw ValueError("ProcessGroup: store must be a Store, got None");
  if (size < 1) throw ValueError("ProcessGroup: world_size must be at least 1, got {}", size);
  require_rank(rank, size, "ProcessGroup", "rank");
  collectives_ = std::make_unique<Collectives>(std::move(store), rank, size, timeout, engine, on_devices);
}
ProcessGroup::~ProcessGroup() = default;

namespace {
// The group of devices, if it takes the tensors.
DeviceGroup* taking(DeviceGroup* devices, const char* what, std::span<const Tensor> tensors, std::span<const Tensor> more = {}) {
  return devices && DeviceGroup::takes(what, {tensors, more}) ? devices : nullptr;
}
std::span<const Tensor> one(const Tensor& t) { return {&t, 1}; }
}  // namespace

bool ProcessGroup::idle() const { return collectives_->idle() && (!collectives_->devices() || collectives_->devices()->idle()); }
int ProcessGroup::rank() const noexcept { return collectives_->rank(); }
int ProcessGroup::size() const noexcept { return collectives_->size(); }
Milliseconds ProcessGroup::timeout() const noexcept { return collectives_->timeout(); }
void ProcessGroup::set_timeout(Milliseconds timeout) { collectives_->set_timeout(timeout); }
void ProcessGroup::set_name(const std::string& name, const std::string& description, const std::vector<int>& ranks) {
  collectives_->name_recorded(name, description, ranks);
}
std::string ProcessGroup::transport() const { return collectives_->engine().name(); }
std::string ProcessGroup::device_transport() const { return collectives_->devices() ? collectives_->devices()->name() : ""; }
std::string ProcessGroup::device_obstacle() const { return collectives_->device_obstacle(); }

WorkRef ProcessGroup::all_reduce(const std::vector<Tensor>& tensors, ReduceOp op, bool async) {
  for (const Tensor& t : tensors) {
    ops::require_defined(t, "all_reduce", "tensor");
    reduction_of(op, t.dtype());
  }
  if (DeviceGroup* const d = taking(collectives_->devices(), "all_reduce", tensors)) return d->all_reduce(tensors, op, async);
  return collectives_->run(async, [c = collectives_.get(), lent = lend(tensors, "all_reduce", Use::Both), op] {
    c->all_reduce(blocks(lent), op);
    give_back(lent);
  });
}

WorkRef ProcessGroup::all_reduce_shards(const std::vector<Tensor>& nodes, int shards, ReduceOp op, bool async) {
  if (shards < size())
    throw ValueError("all_reduce_shards: shards must be at least the number of ranks, {}, so that each rank has one; got {}", size(),
                     shards);
  const std::vector<Shards> wanted = nodes_within(shards_of(rank(), size(), shards), shards);
  if (nodes.size() != wanted.size())
    throw ValueError("all_reduce_shards: rank {} of {} has {} nodes of the tree over {} shards, got {} tensors", rank(), size(),
                     wanted.size(), shards, nodes.size());
  for (const Tensor& t : nodes) {
    ops::require_defined(t, "all_reduce_shards", "tensor");
    if (t.dtype() != nodes[0].dtype() || t.numel() != nodes[0].numel())
      throw ValueError("all_reduce_shards: all nodes must have one dtype and number of elements, got {} of {} and {} of {}",
                       nodes[0].numel(), naru::name_of(nodes[0].dtype()), t.numel(), naru::name_of(t.dtype()));
  }
  reduction_of(op, nodes[0].dtype());
  if (DeviceGroup* const d = taking(collectives_->devices(), "all_reduce_shards", nodes))
    return d->all_reduce_shards(nodes, shards, op, async);
  LentList lent;
  for (size_t i = 0; i < nodes.size(); ++i) lent.emplace_back(nodes[i], "all_reduce_shards", i ? Use::Read : Use::Both);
  return collectives_->run(async, [c = collectives_.get(), lent = std::move(lent), shards, op] {
    c->all_reduce_shards(blocks(lent), shards, op);
    lent[0].give_back();
  });
}

WorkRef ProcessGroup::reduce(const Tensor& tensor, int root, ReduceOp op, bool async) {
  require_rank(root, size(), "reduce", "dst");
  ops::require_defined(tensor, "reduce", "tensor");
  reduction_of(op, tensor.dtype());
  if (DeviceGroup* const d = taking(collectives_->devices(), "reduce", one(tensor))) return d->reduce(tensor, root, op, async);
  const Lent lent(tensor, "reduce", root == rank() ? Use::Both : Use::Read);
  return collectives_->run(async, [c = collectives_.get(), lent, root, op] {
    c->reduce(lent.block(), root, op);
    lent.give_back();
  });
}

WorkRef ProcessGroup::broadcast(const std::vector<Tensor>& tensors, int root, bool async) {
  require_rank(root, size(), "broadcast", "src");
  if (DeviceGroup* const d = taking(collectives_->devices(), "broadcast", tensors)) return d->broadcast(tensors, root, async);
  return collectives_->run(async,
                           [c = collectives_.get(), lent = lend(tensors, "broadcast", root == rank() ? Use::Read : Use::Write), root] {
                             for (const Lent& l : lent) c->broadcast(l.block(), root);
                             give_back(lent);
                           });
}

WorkRef ProcessGroup::all_gather(const std::vector<Tensor>& outputs, const Tensor& input, bool async) {
  require_like(outputs, input, size(), "all_gather", "the output list");
  if (DeviceGroup* const d = taking(collectives_->devices(), "all_gather", outputs, one(input)))
    return d->all_gather(outputs, input, async);
  return collectives_->run(
      async, [c = collectives_.get(), out = lend(outputs, "all_gather", Use::Write), in = Lent(input, "all_gather", Use::Read)] {
        c->all_gather(blocks(out), in.block());
        give_back(out);
      });
}

WorkRef ProcessGroup::gather(const std::vector<Tensor>& outputs, const Tensor& input, int root, bool async) {
  require_rank(root, size(), "gather", "dst");
  if (root == rank())
    require_like(outputs, input, size(), "gather", "gather_list");
  else if (!outputs.empty())
    throw ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.");
  if (DeviceGroup* const d = taking(collectives_->devices(), "gather", outputs, one(input))) return d->gather(outputs, input, root, async);
  return collectives_->run(
      async, [c = collectives_.get(), out = lend(outputs, "gather", Use::Write), in = Lent(input, "gather", Use::Read), root] {
        c->gather(blocks(out), in.block(), root);
        give_back(out);
      });
}

WorkRef ProcessGroup::scatter(const Tensor& output, const std::vector<Tensor>& inputs, int root, bool async) {
  require_rank(root, size(), "scatter", "src");
  if (root == rank())
    require_like(inputs, output, size(), "scatter", "scatter_list");
  else if (!inputs.empty())
    throw ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.");
  if (DeviceGroup* const d = taking(collectives_->devices(), "scatter", inputs, one(output)))
    return d->scatter(output, inputs, root, async);
  return collectives_->run(
      async, [c = collectives_.get(), out = Lent(output, "scatter", Use::Write), in = lend(inputs, "scatter", Use::Read), root] {
        c->scatter(out.block(), blocks(in), root);
        out.give_back();
      });
}

WorkRef ProcessGroup::reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, ReduceOp op, bool async) {
  require_like(inputs, output, size(), "reduce_scatter", "the input list");
  reduction_of(op, output.dtype());
  if (DeviceGroup* const d = taking(collectives_->devices(), "reduce_scatter", inputs, one(output)))
    return d->reduce_scatter(output, inputs, op, async);
  return collectives_->run(async, [c = collectives_.get(), out = Lent(output, "reduce_scatter", Use::Write),
                                   in = lend(inputs, "reduce_scatter", Use::Read), op] {
    c->reduce_scatter(out.block(), blocks(in), op);
    out.give_back();
  });
}

WorkRef ProcessGroup::all_to_all(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, bool async) {
  const auto n = static_cast<size_t>(size());
  if (outputs.size() != n || inputs.size() != n)
    throw ValueError("all_to_all: the lists must hold one tensor for each of the group's {} ranks, got {} outputs and {} inputs", n,
                     outputs.size(), inputs.size());
  for (size_t i = 0; i < n; ++i) {
    ops::require_defined(outputs[i], "all_to_all", "output");
    ops::require_defined(inputs[i], "all_to_all", "input");
    if (outputs[i].dtype() != inputs[0].dtype() || inputs[i].dtype() != inputs[0].dtype())
      throw TypeError("all_to_all: Tensors must have identical type: {} and {}", naru::name_of(inputs[0].dtype()),
                      naru::name_of((outputs[i].dtype() != inputs[0].dtype() ? outputs : inputs)[i].dtype()));
  }
  const auto own = static_cast<size_t>(rank());
  if (outputs[own].numel() != inputs[own].numel())
    throw ValueError("all_to_all: what this rank keeps has {} elements in the inputs and {} in the outputs", inputs[own].numel(),
                     outputs[own].numel());
  if (DeviceGroup* const d = taking(collectives_->devices(), "all_to_all", outputs, inputs)) return d->all_to_all(outputs, inputs, async);
  return collectives_->run(
      async, [c = collectives_.get(), out = lend(outputs, "all_to_all", Use::Write), in = lend(inputs, "all_to_all", Use::Read)] {
        c->all_to_all(blocks(out), blocks(in));
        give_back(out);
      });
}

WorkRef ProcessGroup::barrier(bool async) {
  // As with NCCL's own: what the current streams have been given is done.
  if (collectives_->devices()) collectives_->devices()->synchronize();
  return collectives_->run(async, [c = collectives_.get()] { c->barrier(); });
}

namespace {
void require_other(int peer, const ProcessGroup& group, const char* what, const char* name) {
  if (peer == group.rank())
    throw ValueError("Invalid {} rank: {} rank should not be the same as the rank of the current process.", name, name);
  require_rank(peer, group.size(), what, name);
}
Parcel parcel(const Lent& lent) {
  const Block& b = lent.block();
  return {b.data, b.bytes(), static_cast<uint8_t>(b.type), [lent] { lent.give_back(); }};
}
}  // namespace

WorkRef ProcessGroup::send(const Tensor& tensor, int to, int tag, bool async) {
  require_other(to, *this, "send", "destination");
  if (DeviceGroup* const d = taking(collectives_->devices(), "send", one(tensor))) {
    const WorkRef work = d->messages({{true, tensor, to, tag}});
    if (!async) work->wait();
    return work;
  }
  collectives_->require_own_process();
  auto work = std::make_shared<Work>();
  if (collectives_->engine().pretends()) {
    work->finish();
    return work;
  }
  const Lent lent(tensor, "send", Use::Read);
  collectives_->record(true, to, lent.block(), work);
  collectives_->messages()->send(to, tag, parcel(lent), work);
  if (!async) work->wait();
  return work;
}

WorkRef ProcessGroup::recv(const Tensor& tensor, int from, int tag, bool async) {
  if (from != kAnyRank)
    require_other(from, *this, "recv", "source");
  else if (size() == 1)
    throw ValueError("recv: there is no other rank that could send");
  if (DeviceGroup* const d = taking(collectives_->devices(), "recv", one(tensor))) {
    if (from == kAnyRank)
      throw RuntimeError("recv: NCCL can't receive from any rank: give the source, or use the backend \"gloo\" or tensors on the cpu");
    const WorkRef work = d->messages({{false, tensor, from, tag}});
    if (!async) work->wait();
    return work;
  }
  collectives_->require_own_process();
  auto work = std::make_shared<Work>();
  if (collectives_->engine().pretends()) {
    work->finish({}, from == kAnyRank ? (rank() ? 0 : 1) : from);
    return work;
  }
  const Lent lent(tensor, "recv", Use::Write);
  collectives_->record(false, from, lent.block(), work);
  collectives_->messages()->receive(from, tag, parcel(lent), work);
  if (!async) work->wait();
  return work;
}

std::vector<WorkRef> ProcessGroup::exchange(const std::vector<Message>& messages) {
  std::vector<Tensor> tensors;
  for (const Message& m : messages) {
    if (m.sends || m.peer != kAnyRank) require_other(m.peer, *this, m.sends ? "send" : "recv", m.sends ? "destination" : "source");
    tensors.push_back(m.tensor);
  }
  DeviceGroup* const d = messages.empty() ? nullptr : taking(collectives_->devices(), "exchange", tensors);
  if (d && messages.size() > 1 && std::ranges::all_of(messages, [](const Message& m) { return m.peer != kAnyRank; }))
    return {d->messages(messages)};
  std::vector<WorkRef> works;
  for (const Message& m : messages) works.push_back(m.sends ? send(m.tensor, m.peer, m.tag, true) : recv(m.tensor, m.peer, m.tag, true));
  return works;
}

void ProcessGroup::abort(const std::string& reason) {
  if (collectives_->devices()) collectives_->devices()->abort(reason);
  if (collectives_->messages()) collectives_->messages()->fail(reason);
}

}  // namespace naru::distributed
