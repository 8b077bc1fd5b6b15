// Defines the module naru._C.

#include <cstring>

#include "core/language.h"
#include "device/distributed.h"
#include "naru/version.h"
#include "object/batches.h"
#include "object/lines.h"
#include "object/overrides.h"
#include "object/tensor_object.h"
#include "runtime/os/file_path.h"
#include "runtime/os/interrupt.h"
#include "runtime/os/system.h"

namespace naru::py {
namespace {

void define_errors(nb::module_& m) {
  const auto define = [&](PyObject*& error, const char* name, const char* doc) {
    error = PyErr_NewExceptionWithDoc(name, doc, PyExc_RuntimeError, nullptr);
    m.attr(std::strrchr(name, '.') + 1) = nb::handle(check(error));
  };
  define(out_of_memory_error, "naru.OutOfMemoryError", "A device has not enough memory for a request.");
  define(device_unavailable_error, "naru.DeviceUnavailableError", "A device that is not there, or does not work.");
  define(device_lost_error, "naru.DeviceLostError", "A device stopped working; everything on it is gone.");
  define(linalg_error, "naru._C._LinAlgError", "A matrix is singular, not positive-definite, or an algorithm does not converge.");
  define(no_batching_rule, "naru._C._NoBatchingRule", "An operator that C++ has no rule for, for tensors of a vmap.");
  define(written_without_batch, "naru._C._WrittenWithoutBatchError", "A tensor without the batch would be written from one with it.");
}

class PythonLanguage final : public Language {
 public:
  bool is_python() const noexcept override { return true; }
  uint32_t line() noexcept override { return program_line(); }
  std::string line_text(uint32_t line) override { return program_line_text(line); }
  uint32_t call_stack() noexcept override { return program_calls(); }
  std::optional<std::string> stack_text() override { return program_stack(); }
  void release(void* object) noexcept override { give_up(object); }
};
constinit PythonLanguage python_language;

}  // namespace
}  // namespace naru::py

NB_MODULE(_C, m) {
  using namespace naru;
  using namespace naru::py;
  m.doc() = "The core of naru: tensors and functions on them.";
  m.attr("_version") = nb::str(version().data(), version().size());
  nb::set_leak_warnings(false);  // dtypes and devices live as long as the process
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const nb::python_error&) {
      throw;  // nanobind handles these
    } catch (const nb::builtin_exception&) {
      throw;
    } catch (const nb::cast_error&) {
      throw;
    } catch (...) {
      set_python_error();
    }
  });
  define_errors(m);
  make_tensor_type(m);
  define_types(m);
  define_random(m);
  define_data();
  define_creation();
  define_elementwise();
  define_complex();
  define_sparse();
  define_reductions();
  define_shapes();
  define_scatters();
  define_counting();
  define_linalg();
  define_indexing();
  define_networks();
  define_functional();
  define_convolutions();
  define_images();
  define_recurrent();
  define_attention();
  define_optimizers();
  define_storage(m);
  define_methods();
  define_layers(m);
  define_compositions();
  define_selecting();
  define_masked();
  define_scattered_views();
  define_fourier();
  define_deprecated();
  define_printing();
  define_autograd(m);
  define_derivatives();
  define_overrides();
  define_batches_of_vmap(m);
  define_devices(m);
  define_streams(m);
  define_graphs(m);
  define_flops(m);
  define_autocast();
  define_fallback(m);
  define_kernels(m);
  define_extensions(m);
  define_batches(m);
  define_safetensors(m);
  define_files(m);
  define_distributed(m);
  install_functions(m);
  // The package's own files do not count as the user's program. (Python names them with the system's separators.)
  const std::string path = runtime::system::path_of_code(reinterpret_cast<const void*>(&program_line));
  if (!path.empty()) {
    const std::u8string folder = (runtime::file_path(path).parent_path().make_preferred() / "").u8string();
    set_package_folder({folder.begin(), folder.end()});
  }
  runtime::watch_interrupts(true);
  set_warner(warn_user);
  program_language = &python_language;
}
