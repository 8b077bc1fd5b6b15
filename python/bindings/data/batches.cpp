// Batches of tensor rows in a given order, prepared by threads without the GIL; utils/data/_utils/gathered.py has the Python part.
#include <nanobind/stl/string.h>

#include "data/pass.h"
#include "naru/ops.h"
#include "object/tensor_object.h"
#include "runtime/os/fork.h"

namespace naru::py {
namespace {

class Batches {
 public:
  Batches(nb::list tensors, nb::object order, const data::LoaderOptions& options)
      : generation_(runtime::fork_generation()), ahead_(options.num_workers > 0) {
    std::vector<Tensor> list;
    for (const nb::handle t : tensors) list.push_back(tensor_or_throw(t.ptr(), "Batches: an item of tensors"));
    const Tensor& numbers = tensor_or_throw(order.ptr(), "Batches: order");
    const GilRelease scope;
    pass_ = std::make_unique<data::Pass>(std::make_shared<data::TensorDataset>(std::move(list)), numbers.to_ints(), options);
  }
  Batches(const Batches&) = delete;
  ~Batches() { drop(); }

  // The threads end by themselves. Does not wait for a batch in progress, because a finalizer may call this.
  void drop() {
    if (generation_ != runtime::fork_generation()) static_cast<void>(pass_.release());
    if (!pass_) return;
    if (!ahead_) return pass_.reset();
    try {
      std::thread([pass = std::move(pass_)] {}).detach();
    } catch (const std::exception&) {
      // If no thread can be created, the pass ends here.
    }
  }

  void stop() {
    // A forked child has none of the threads, and a lock may be held by one of them.
    if (generation_ != runtime::fork_generation()) static_cast<void>(pass_.release());
    if (!pass_) return;
    const GilRelease scope;
    pass_.reset();
  }

  nb::object next() {
    if (!pass_ || generation_ != runtime::fork_generation())
      throw RuntimeError("this pass of the DataLoader was stopped; start another one");
    while (!pass_->ready()) {
      {
        const GilRelease scope;
        if (pass_->wait(kLookSeconds)) break;
      }
      check(PyErr_CheckSignals());
    }
    std::optional<data::Sample> batch;
    if (ahead_) {
      batch = pass_->next();
    } else {
      const GilRelease scope;
      batch = pass_->next();
    }
    if (!batch) throw nb::stop_iteration();
    PyObject* const list = check(PyList_New(static_cast<Py_ssize_t>(batch->size())));
    nb::object result = nb::steal(list);
    for (size_t i = 0; i < batch->size(); ++i) PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), check(wrap((*batch)[i])));
    return result;
  }

 private:
  // Interval of signal checks.
  static constexpr double kLookSeconds = 0.05;
  const int generation_;
  const bool ahead_;  // worker threads prepare batches
  std::unique_ptr<data::Pass> pass_;
};

}  // namespace

void define_batches(nb::module_& m) {
  nb::class_<Batches>(m, "_Batches")
      .def("__init__",
           [](Batches* self, nb::list tensors, nb::object order, int64_t batch_size, bool drop_last, int workers, int prefetch, bool pin) {
             data::LoaderOptions options;
             options.batch_size = batch_size, options.drop_last = drop_last, options.pin_memory = pin;
             options.num_workers = workers, options.prefetch_factor = prefetch;
             new (self) Batches(tensors, order, options);
           })
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", &Batches::next)
      .def("stop", &Batches::stop)
      .def("drop", &Batches::drop);
}

}  // namespace naru::py
