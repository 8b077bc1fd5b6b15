// User-defined kernels; python/naru/_functions/kernel.py has the public API.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "naru/kernel.h"

#include "object/convert.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

// An integer or a tuple of up to three; None: empty.
Dims extent_from(PyObject* o, const char* name) {
  Dims dims;
  int64_t one = 0;
  if (o == Py_None || dims_from(o, dims)) {
    if (o != Py_None && dims.empty()) throw ValueError("{}=() has no number in it; wanted one to three", name);
    return dims;
  }
  if (!int_from(o, one)) throw TypeError("{}: wanted an int or a tuple of up to three, got {}", name, Py_TYPE(o)->tp_name);
  return {one};
}

std::vector<KernelArgument> arguments_from(const Kernel& kernel, nb::tuple arguments) {
  std::vector<KernelArgument> list;
  const std::vector<std::string> names = kernel.parameters();
  for (nb::handle a : arguments) {
    Scalar number;
    if (is_tensor(a.ptr()))
      list.emplace_back(tensor_of(a.ptr()));
    else if (scalar_from(a.ptr(), number, false))
      list.emplace_back(number);
    else
      throw TypeError("{}(): parameter '{}' wants a tensor or a number, got {}", kernel.name(),
                      list.size() < names.size() ? names[list.size()] : "", Py_TYPE(a.ptr())->tp_name);
  }
  return list;
}

nb::object argument_object(const KernelArgument& a) {
  return a.tensor() ? wrapped(*a.tensor()) : nb::steal(check(scalar_object(a.number())));
}

nb::object extent_object(const Dims& dims) {
  if (dims.empty()) return nb::none();
  nb::list list;
  for (const int64_t n : dims) list.append(n);
  return nb::tuple(list);
}

// A context; valid only while the Python backward function runs.
struct PyContext {
  std::shared_ptr<const KernelContext*> context;
  const KernelContext& get() const {
    if (!*context)
      throw RuntimeError("the context of a kernel's backward function is gone: it was kept until after the function had returned");
    return **context;
  }
};

Kernel::Backward backward_from(PyObject* f, std::string name) {
  return [f = keep(f), name = std::move(name)](const KernelContext& context) {
    const GilAcquire gil;
    nb::list grads;
    for (const Tensor& g : context.grads) grads.append(wrapped(g));
    const auto shared = std::make_shared<const KernelContext*>(&context);
    struct End {
      const KernelContext*& context;
      ~End() { context = nullptr; }
    } const end{*shared};
    nb::object result = nb::steal(check(call_python(f.get(), {nb::cast(PyContext{shared}).ptr(), grads.ptr()})));
    std::vector<Tensor> found;
    for (nb::handle g : result) found.push_back(g.is_none() ? Tensor() : tensor_or_throw(g.ptr(), "a gradient that backward returns"));
    return found;
  };
}

}  // namespace

void define_kernels(nb::module_& m) {
  nb::class_<PyContext>(m, "_KernelContext")
      .def("argument", [](const PyContext& c, const std::string& name) { return argument_object(c.get().argument(name)); })
      .def("extent", [](const PyContext& c) {
        const Extent& e = c.get().extent;
        return nb::make_tuple(extent_object(e.grid), extent_object(e.blocks), extent_object(e.threads));
      });
  nb::class_<Kernel>(m, "_Kernel")
      .def(nb::init<const std::string&, const std::string&>())
      .def("set_backward_kernel", [](Kernel& k, const std::string& name) { k.set_backward(name); })
      .def("set_backward", [](Kernel& k, nb::object f) { k.set_backward(backward_from(f.ptr(), k.name())); })
      .def_prop_ro("name", &Kernel::name)
      .def_prop_ro("signature", &Kernel::signature)
      .def_prop_ro("inputs", &Kernel::inputs)
      .def_prop_ro("outputs", &Kernel::outputs)
      .def(
          "run",
          [](const Kernel& k, nb::tuple arguments, nb::object grid, nb::object blocks, nb::object threads, int64_t shared) {
            const std::vector<KernelArgument> list = arguments_from(k, std::move(arguments));
            const Extent extent{extent_from(grid.ptr(), "grid"), extent_from(blocks.ptr(), "blocks"), extent_from(threads.ptr(), "threads"),
                                shared};
            GilRelease scope;
            k(list, extent);
          },
          nb::arg("arguments"), nb::arg("grid").none(), nb::arg("blocks").none(), nb::arg("threads").none(), nb::arg("shared"));
}

}  // namespace naru::py
