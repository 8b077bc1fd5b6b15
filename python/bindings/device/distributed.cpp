// Stores and process groups; python/naru/distributed has the public API.
#include "device/distributed.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "distributed/ordered.h"
#include "naru/distributed/gradient_reducer.h"
#include "naru/distributed/group.h"
#include "naru/distributed/store.h"

namespace naru::py {
namespace {

using namespace naru::distributed;
using Keys = std::vector<std::string>;

std::string text_of(const nb::bytes& b) { return {b.c_str(), b.size()}; }
nb::bytes bytes_of(const std::string& s) { return nb::bytes(s.data(), s.size()); }

// Calls f() without the GIL.
template <class F>
auto unlocked(F&& f) {
  const GilRelease scope;
  return f();
}

std::vector<Tensor> tensors_of(const nb::list& list, const char* what) {
  std::vector<Tensor> all;
  for (const nb::handle t : list) all.push_back(tensor_or_throw(t.ptr(), what));
  return all;
}

DistErrors dist_errors{};

void define_distributed_errors(nb::module_& m) {
  dist_errors = define_dist_errors(m);
  // Device work may fail with them too, wherever its results are read.
  class_of_error = [](const Error& e) -> PyObject* {
    if (dynamic_cast<const DistBackendError*>(&e)) return dist_errors.backend;
    if (dynamic_cast<const DistNetworkError*>(&e)) return dist_errors.network;
    if (dynamic_cast<const DistStoreError*>(&e)) return dist_errors.store;
    return dynamic_cast<const DistError*>(&e) ? dist_errors.dist : nullptr;
  };
}

void define_stores(nb::module_& m) {
  nb::class_<Store>(m, "_Store")
      .def("set", [](Store& s, const std::string& key, const nb::bytes& value) { unlocked([&, v = text_of(value)] { s.set(key, v); }); })
      .def("get", [](Store& s, const std::string& key) { return bytes_of(unlocked([&] { return s.get(key); })); })
      .def("multi_get",
           [](Store& s, const Keys& keys) {
             nb::list values;
             for (const std::string& value : unlocked([&] { return s.multi_get(keys); })) values.append(bytes_of(value));
             return values;
           })
      .def("add", [](Store& s, const std::string& key, int64_t n) { return unlocked([&] { return s.add(key, n); }); })
      .def("check", [](Store& s, const Keys& keys) { return unlocked([&] { return s.check(keys); }); })
      .def("wait", [](Store& s, const Keys& keys, int64_t ms) { unlocked([&] { s.wait(keys, ms < 0 ? s.timeout() : Milliseconds(ms)); }); })
      .def("compare_set",
           [](Store& s, const std::string& key, const nb::bytes& expected, const nb::bytes& desired) {
             return bytes_of(unlocked([&, e = text_of(expected), d = text_of(desired)] { return s.compare_set(key, e, d); }));
           })
      .def("append",
           [](Store& s, const std::string& key, const nb::bytes& value) { unlocked([&, v = text_of(value)] { s.append(key, v); }); })
      .def("list_keys", [](Store& s) { return unlocked([&] { return s.list_keys(); }); })
      .def("delete_key", [](Store& s, const std::string& key) { return unlocked([&] { return s.delete_key(key); }); })
      .def("num_keys", [](Store& s) { return unlocked([&] { return s.num_keys(); }); })
      .def("timeout", [](const Store& s) { return s.timeout().count(); })
      .def("set_timeout", [](Store& s, int64_t ms) { s.set_timeout(Milliseconds(ms)); });
  m.def("_hash_store", [](int64_t ms) -> std::shared_ptr<Store> { return std::make_shared<HashStore>(Milliseconds(ms)); });
  m.def("_prefix_store", [](const std::string& prefix, std::shared_ptr<Store> store) -> std::shared_ptr<Store> {
    return std::make_shared<PrefixStore>(prefix, std::move(store));
  });
  m.def("_file_store", [](const std::string& path, int users, int64_t ms) -> std::shared_ptr<Store> {
    return unlocked([&] { return std::make_shared<FileStore>(path, users, Milliseconds(ms)); });
  });
  m.def("_tcp_store", [](const std::string& host, int port, bool is_server, int workers, int64_t ms, bool wait, bool several) {
    if (port < 0 || port > 65535) throw ValueError("TCPStore: port must be 0 to 65535, got {}", port);
    auto store = unlocked(
        [&] { return std::make_shared<TCPStore>(host, static_cast<uint16_t>(port), is_server, workers, Milliseconds(ms), wait, several); });
    const int chosen = store->port();
    return nb::make_tuple(std::shared_ptr<Store>(std::move(store)), chosen);
  });
}

void define_work(nb::module_& m) {
  nb::class_<Work>(m, "_Work")
      .def("wait",
           [](Work& w, int64_t ms) { return unlocked([&] { return w.wait(ms < 0 ? std::nullopt : std::optional(Milliseconds(ms))); }); })
      .def("is_completed", &Work::is_completed)
      .def("is_success", &Work::is_success)
      .def("source", &Work::source)
      .def("then", [](Work& w, nb::object f) {
        auto kept = keep(f.ptr());
        const GilRelease scope;
        w.then([kept] {
          const GilAcquire gil;
          PyObject* const result = call_python(kept.get(), {});
          if (!result) PyErr_WriteUnraisable(kept.get());
          Py_XDECREF(result);
        });
      });
}

ReduceOp op_of(int op) {
  if (op < 0 || op > static_cast<int>(ReduceOp::BXor)) throw ValueError("ReduceOp must be SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR");
  return static_cast<ReduceOp>(op);
}

void define_messages(nb::class_<ProcessGroup>& group) {
  using Group = ProcessGroup;
  using List = nb::list;
  const auto run = [](const auto& f) { return unlocked(f); };
  group
      .def("send",
           [=](Group& g, List t, int to, int tag, bool async) {
             return run([&, list = tensors_of(t, "send(): tensor")] { return g.send(list.at(0), to, tag, async); });
           })
      .def("recv",
           [=](Group& g, List t, int from, int tag, bool async) {
             return run([&, list = tensors_of(t, "recv(): tensor")] { return g.recv(list.at(0), from, tag, async); });
           })
      .def("exchange",
           // messages: tuples (sends, tensor, peer, tag)
           [=](Group& g, List messages) {
             std::vector<Group::Message> list;
             for (const nb::handle each : messages) {
               const auto m = nb::cast<nb::tuple>(each);
               list.push_back({nb::cast<bool>(m[0]), tensor_or_throw(m[1].ptr(), "batch_isend_irecv(): tensor"), nb::cast<int>(m[2]),
                               nb::cast<int>(m[3])});
             }
             return run([&] { return g.exchange(list); });
           })
      .def("abort", [=](Group& g, const std::string& reason) { run([&] { g.abort(reason); }); });
}

// See python/naru/nn/parallel/distributed.py.
void define_gradient_reducer(nb::module_& m) {
  using Reducer = GradientReducer;
  nb::class_<Reducer>(m, "_GradientReducer")
      .def(
          "__init__",
          [](Reducer* self, const nb::list& parameters, std::vector<std::string> names, ProcessGroup& group, size_t first, size_t bucket,
             bool as_views) {
            new (self) Reducer(tensors_of(parameters, "DistributedDataParallel: parameter"), group,
                               {.first_bucket = first, .bucket = bucket, .as_views = as_views, .names = std::move(names)});
          },
          nb::keep_alive<1, 4>())
      .def("prepare", [](Reducer& r) { r.prepare(); })
      .def("prepare_for", [](Reducer& r, const nb::list& outputs) { r.prepare(tensors_of(outputs, "DistributedDataParallel: output")); })
      .def("stop", &Reducer::stop)
      .def("join_with_zeros", [](Reducer& r) { unlocked([&] { r.join_with_zeros(); }); })
      .def("set_divisor", [](Reducer& r, int divisor) { r.set_divisor(divisor > 0 ? std::optional(divisor) : std::nullopt); })
      // exchange(bucket, vector, parameters, last) returns a callable without arguments.
      .def("set_exchange", [](Reducer& r, nb::handle exchange) {
        const std::shared_ptr<PyObject> f = keep(exchange.ptr());
        r.set_exchange([f](size_t bucket, const Tensor& vector, const std::vector<Tensor>& parameters, bool last) -> std::function<void()> {
          const GilAcquire gil;
          nb::list own;
          for (const Tensor& p : parameters) own.append(wrapped(p));
          const nb::object wait = nb::borrow(f.get())(bucket, wrapped(vector), own, last);
          return [wait = keep(wait.ptr())] {
            const GilAcquire gil;
            nb::steal(check(PyObject_CallNoArgs(wait.get())));
          };
        });
      });
}

void define_group(nb::module_& m) {
  m.def("_mpi_path", &mpi_path);
  m.def("_device_library_obstacle", [] { return unlocked([] { return device_library_obstacle(); }); });
  using Group = ProcessGroup;
  using List = nb::list;
  const auto run = [](const auto& f) { return unlocked(f); };
  nb::class_<Group> group(m, "_ProcessGroup");
  group
      .def("__init__",
           [](Group* self, std::shared_ptr<Store> store, int rank, int size, int64_t ms, const std::string& engine, bool by_library) {
             const OnDevices on_devices = by_library ? OnDevices::Library : OnDevices::Host;
             unlocked([&] { new (self) Group(std::move(store), rank, size, Milliseconds(ms), engine, on_devices); });
           })
      .def("idle", [](const Group& g) { return unlocked([&] { return g.idle(); }); })
      .def("rank", &Group::rank)
      .def("size", &Group::size)
      .def("timeout", [](const Group& g) { return g.timeout().count(); })
      .def("set_timeout", [](Group& g, int64_t ms) { g.set_timeout(Milliseconds(ms)); })
      .def("transport", &Group::transport)
      .def("set_name", &Group::set_name)
      .def("device_transport", &Group::device_transport)
      .def("device_obstacle", &Group::device_obstacle)
      .def("all_reduce",
           [=](Group& g, List t, int op, bool async) {
             return run([&, list = tensors_of(t, "all_reduce(): tensor")] { return g.all_reduce(list, op_of(op), async); });
           })
      .def("all_reduce_shards",
           [=](Group& g, List t, int shards, int op, bool async) {
             return run(
                 [&, list = tensors_of(t, "all_reduce_shards(): tensor")] { return g.all_reduce_shards(list, shards, op_of(op), async); });
           })
      .def("reduce",
           [=](Group& g, List t, int root, int op, bool async) {
             return run([&, list = tensors_of(t, "reduce(): tensor")] { return g.reduce(list.at(0), root, op_of(op), async); });
           })
      .def("broadcast",
           [=](Group& g, List t, int root, bool async) {
             return run([&, list = tensors_of(t, "broadcast(): tensor")] { return g.broadcast(list, root, async); });
           })
      .def("all_gather",
           [=](Group& g, List out, List in, bool async) {
             return run([&, o = tensors_of(out, "all_gather(): tensor_list's item"), i = tensors_of(in, "all_gather(): tensor")] {
               return g.all_gather(o, i.at(0), async);
             });
           })
      .def("gather",
           [=](Group& g, List out, List in, int root, bool async) {
             return run([&, o = tensors_of(out, "gather(): gather_list's item"), i = tensors_of(in, "gather(): tensor")] {
               return g.gather(o, i.at(0), root, async);
             });
           })
      .def("scatter",
           [=](Group& g, List out, List in, int root, bool async) {
             return run([&, o = tensors_of(out, "scatter(): tensor"), i = tensors_of(in, "scatter(): scatter_list's item")] {
               return g.scatter(o.at(0), i, root, async);
             });
           })
      .def("reduce_scatter",
           [=](Group& g, List out, List in, int op, bool async) {
             return run([&, o = tensors_of(out, "reduce_scatter(): output"), i = tensors_of(in, "reduce_scatter(): input_list's item")] {
               return g.reduce_scatter(o.at(0), i, op_of(op), async);
             });
           })
      .def("all_to_all",
           [=](Group& g, List out, List in, bool async) {
             return run([&, o = tensors_of(out, "all_to_all(): output_tensor_list's item"),
                         i = tensors_of(in, "all_to_all(): input_tensor_list's item")] { return g.all_to_all(o, i, async); });
           })
      .def("barrier", [=](Group& g, bool async) { return run([&] { return g.barrier(async); }); });
  define_messages(group);
}

}  // namespace

void define_distributed(nb::module_& m) {
  define_distributed_errors(m);
  define_stores(m);
  define_work(m);
  define_group(m);
  define_gradient_reducer(m);
  // Whether the tree over all shards has a node of `count` shards from `first` on.
  m.def("_is_tree_node", [](int first, int count, int shards) {
    return nodes_within({first, count}, shards) == std::vector<Shards>{{first, count}};
  });
}

}  // namespace naru::py
