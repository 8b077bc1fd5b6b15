// Random numbers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>

#include "naru/random.h"
#include "object/tensor_object.h"
#include "ops/random/host_draws.h"

namespace naru::py {
namespace {

// PyTorch's get_rng_state(), byte for byte, except the cached single-precision normal.
struct PyTorchState {
  uint64_t seed;
  int32_t left, seeded = 1;
  uint64_t next;
  uint64_t words[MersenneTwister::kWords];
  double normal_x = 0, normal = 0, rho = 0;
  int32_t has_normal, pad = 0;
  float single_normal = 0;
  int32_t has_single = 0;
};
static_assert(sizeof(PyTorchState) == 5056);

Tensor pytorch_state_of(Generator& g) {
  const MersenneTwister t = g.twister_state();
  PyTorchState s{};
  s.seed = g.initial_seed();
  s.left = static_cast<int32_t>(MersenneTwister::kWords + 1 - t.at);
  s.seeded = 1;
  s.next = t.at;
  std::copy(t.words.begin(), t.words.end(), s.words);
  s.normal = t.normal;
  s.has_normal = t.has_normal;
  return from_data(&s, {sizeof s}, DType::U8, Options(Device(DeviceType::Cpu)));
}

void set_pytorch_state(Generator& g, const Tensor& host) {
  PyTorchState s;
  std::memcpy(&s, host.data_ptr(), sizeof s);
  if (s.left < 1 || s.left > static_cast<int32_t>(MersenneTwister::kWords) || s.next > MersenneTwister::kWords)
    throw RuntimeError("Invalid mt19937 state");
  MersenneTwister t(s.seed);
  for (size_t i = 0; i < t.words.size(); ++i) t.words[i] = static_cast<uint32_t>(s.words[i]);
  t.at = s.left == 1 ? MersenneTwister::kWords : static_cast<uint32_t>(s.next);
  t.has_normal = s.has_normal != 0;
  t.normal = s.normal;
  g.set_twister(s.seed, t);
}

// A generator's state as 16 bytes, seed and number of draws; or PyTorch's state.
Tensor state_of(Generator& g) {
  if (random_algorithm() == RandomAlgorithm::PyTorch) return pytorch_state_of(g);
  const uint64_t words[2] = {g.initial_seed(), g.offset()};
  return from_data(words, {16}, DType::U8, Options(Device(DeviceType::Cpu)));
}

void set_state(Generator& g, const Tensor& state) {
  if (state.dtype() == DType::U8 && state.numel() == sizeof(PyTorchState)) return set_pytorch_state(g, state.cpu().contiguous());
  if (state.dtype() != DType::U8 || state.numel() != 16)
    throw RuntimeError("RNG state must be a torch.ByteTensor of 16 elements, got {} of shape {}", name_of(state.dtype()),
                       state.sizes().str());
  const Tensor host = state.cpu().contiguous();
  uint64_t words[2];
  std::memcpy(words, host.data_ptr(), sizeof words);
  g.set_state(words[0], words[1]);
}

uint64_t seed_from(PyObject* o) {
  if (!PyIndex_Check(o)) throw TypeError("manual_seed expected a long, but got {}", Py_TYPE(o)->tp_name);
  nb::object i = nb::steal(check(PyNumber_Index(o)));
  const unsigned long long value = PyLong_AsUnsignedLongLongMask(i.ptr());
  if (PyErr_Occurred()) nb::raise_python_error();
  return value;
}

void define_generator(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "A seed and how many draws were made from it.")
      .def(
          "__init__",
          [](Generator* g, nb::object device) {
            Device d;
            if (!device.is_none() && !device_from(device.ptr(), d))
              throw TypeError("Generator(): argument 'device' (position 1) must be torch.device, not {}", Py_TYPE(device.ptr())->tp_name);
            new (g) Generator();
          },
          nb::arg("device") = nb::none())
      .def(
          "manual_seed",
          [](nb::object self, nb::object seed) {
            nb::cast<Generator&>(self).manual_seed(seed_from(seed.ptr()));
            return self;
          },
          nb::arg("seed"))
      .def("initial_seed", &Generator::initial_seed)
      .def("seed", &Generator::seed)
      .def(
          "clone_state",
          [](Generator& g) {
            auto other = std::make_unique<Generator>();
            set_state(*other, state_of(g));
            return other.release();
          },
          nb::rv_policy::take_ownership)
      .def("get_state", [](Generator& g) { return wrapped(state_of(g)); })
      .def("set_state",
           [](nb::object self, nb::object state) {
             if (!is_tensor(state.ptr())) throw nb::type_error("expected a torch.ByteTensor");
             try {
               set_state(nb::cast<Generator&>(self), tensor_or_throw(state.ptr(), "set_state(): new_state"));
             } catch (...) {
               set_python_error();
               throw nb::python_error();
             }
             return self;
           })
      .def_prop_ro("device", [](const Generator&) { return nb::steal(device_object(Device(DeviceType::Cpu))); });
  m.attr("default_generator") = nb::cast(&default_generator(), nb::rv_policy::reference);
}

void define_makers() {
  constexpr const char* kSizes = "*size, generator=None, @options, out=None";
  def(kFunction, "rand", kSizes, "Numbers uniform in [0, 1).", [](const Dims& s, Generator* g, const Options& o) { return rand(s, o, g); });
  def(kFunction, "randn", kSizes, "Normal numbers of mean 0 and variance 1.",
      [](const Dims& s, Generator* g, const Options& o) { return randn(s, o, g); });
  def(kFunction, "randint", "high, size, *, generator=None, @options, out=None", "Integers from 0 to high - 1.",
      [](int64_t high, const Sequence& s, Generator* g, const Options& o) { return randint(0, high, s.dims, o, g); });
  def(kFunction, "randint", "low, high, size, *, generator=None, @options, out=None", "Integers from low to high - 1.",
      [](int64_t low, int64_t high, const Sequence& s, Generator* g, const Options& o) { return randint(low, high, s.dims, o, g); });
  def(kFunction, "randperm", "n, *, generator=None, @options, out=None", "0 to n - 1 in random order.",
      [](int64_t n, Generator* g, const Options& o) { return randperm(n, o, g); });
  constexpr const char* kLike = "input, *, generator=None, @options, memory_format=None";
  def(kFunction, "rand_like", kLike, "Uniform numbers of the input's shape, dtype and device.",
      [](const Tensor& t, Generator* g, const Options& o, std::optional<MemoryFormat> format) {
        return rand_like(t, in_format(o, format), g);
      });
  def(kFunction, "randn_like", kLike, "Normal numbers of the input's shape, dtype and device.",
      [](const Tensor& t, Generator* g, const Options& o, std::optional<MemoryFormat> format) {
        return randn_like(t, in_format(o, format), g);
      });
  def(kFunction, "randint_like", "input, high, *, generator=None, @options, memory_format=None", "Integers from 0 to high - 1.",
      [](const Tensor& t, int64_t high, Generator* g, const Options& o, std::optional<MemoryFormat> format) {
        return randint_like(t, 0, high, in_format(o, format), g);
      });
  def(kFunction, "randint_like", "input, low, high, *, generator=None, @options, memory_format=None", "Integers from low to high - 1.",
      [](const Tensor& t, int64_t low, int64_t high, Generator* g, const Options& o, std::optional<MemoryFormat> format) {
        return randint_like(t, low, high, in_format(o, format), g);
      });
  def(kBoth, "bernoulli", "input, *, generator=None, out=None", "1 with the probability of each element, else 0.",
      [](const Tensor& p, Generator* g) { return bernoulli(p, g); });
  def(kBoth, "bernoulli", "input, p, *, generator=None", "1 with probability p, else 0.",
      [](const Tensor& t, double p, Generator* g) { return bernoulli(t, p, g); });
  def(kBoth, "multinomial", "input, num_samples, replacement=False, *, generator=None, out=None",
      "Category numbers by the weights in each row.",
      [](const Tensor& w, int64_t n, bool replacement, Generator* g) { return multinomial(w, n, replacement, g); });
  def(kFunction, "normal", "mean, std=1.0, *, generator=None, out=None",
      "Normal numbers with the mean and standard deviation of each element.",
      [](const Tensor& mean, const Operand& std, Generator* g) { return normal(mean, std, {}, g); });
  def(kFunction, "normal", "mean, std, *, generator=None, out=None", "Normal numbers with the mean and standard deviation of each element.",
      [](const Operand& mean, const Tensor& std, Generator* g) { return normal(mean, std, {}, g); });
  def(kFunction, "normal", "mean, std, size, *, generator=None, @options, out=None", "Normal numbers of the given sizes.",
      [](double mean, double std, const Dims& size, Generator* g, const Options& o) { return normal(mean, std, size, o, g); });
  def(kFunction, "poisson", "input, generator=None", "How many events come where the input does on average.",
      [](const Tensor& rates, Generator* g) { return poisson(rates, g); });
  def(kFunction, "_standard_gamma", "input, generator=None", "Gamma numbers of these shapes and scale 1.",
      [](const Tensor& shape, Generator* g) { return standard_gamma(shape, g); });
  def(kFunction, "binomial", "count, prob, generator=None", "How many of `count` tries of probability `prob` succeed.",
      [](const Tensor& count, const Tensor& prob, Generator* g) { return binomial(count, prob, g); });
}

void define_fillers() {
  def(kMethod, "uniform_", "input, from_=0.0, to=1.0, *, generator=None", "Fills with numbers uniform in [from, to).",
      [](const Tensor& t, double from, double to, Generator* g) {
        uniform_(t, from, to, g);
        return Self();
      });
  // The parameter is named `from`, a Python keyword, which callers can only pass as **{'from': 0}.
  def(kMethod, "uniform_", "input, from, to=1.0, *, generator=None", "Fills with numbers uniform in [from, to).",
      [](const Tensor& t, double from, double to, Generator* g) {
        uniform_(t, from, to, g);
        return Self();
      });
  def(kMethod, "uniform_", "input, a, b, *, generator=None", "Fills with numbers uniform in [a, b).",
      [](const Tensor& t, double from, double to, Generator* g) {
        uniform_(t, from, to, g);
        return Self();
      });
  def(kMethod, "normal_", "input, mean=0.0, std=1.0, *, generator=None", "Fills with normal numbers.",
      [](const Tensor& t, double mean, double std, Generator* g) {
        normal_(t, mean, std, g);
        return Self();
      });
  def(kMethod, "bernoulli_", "input, p=0.5, *, generator=None", "Fills with 1 with probability p, else 0.",
      [](const Tensor& t, double p, Generator* g) {
        bernoulli_(t, p, g);
        return Self();
      });
  def(kMethod, "bernoulli_", "input, p, *, generator=None", "Fills with 1 with the probability of each element, else 0.",
      [](const Tensor& t, const Tensor& p, Generator* g) {
        bernoulli_(t, p, g);
        return Self();
      });
  def(kMethod, "random_", "input, *, generator=None", "Fills with integers that the dtype can hold.", [](const Tensor& t, Generator* g) {
    random_(t, std::nullopt, std::nullopt, g);
    return Self();
  });
  def(kMethod, "random_", "input, to, *, generator=None", "Fills with integers from 0 to `to` - 1.",
      [](const Tensor& t, int64_t to, Generator* g) {
        random_(t, 0, to, g);
        return Self();
      });
  def(kMethod, "random_", "input, from, to, *, generator=None", "Fills with integers from `from` to `to` - 1.",
      [](const Tensor& t, int64_t from, std::optional<int64_t> to, Generator* g) {
        random_(t, from, to, g);
        return Self();
      });
  def(kMethod, "cauchy_", "input, median=0.0, sigma=1.0, *, generator=None", "Fills with numbers of Cauchy's distribution.",
      [](const Tensor& t, double median, double sigma, Generator* g) {
        cauchy_(t, median, sigma, g);
        return Self();
      });
  def(kMethod, "log_normal_", "input, mean=1.0, std=2.0, *, generator=None", "Fills with exp of normal numbers.",
      [](const Tensor& t, double mean, double std, Generator* g) {
        log_normal_(t, mean, std, g);
        return Self();
      });
  def(kMethod, "geometric_", "input, p, *, generator=None", "Fills with how many tries it takes until one of probability p succeeds.",
      [](const Tensor& t, double p, Generator* g) {
        geometric_(t, p, g);
        return Self();
      });
  def(kMethod, "exponential_", "input, lambd=1.0, *, generator=None", "Fills with exponentially distributed numbers.",
      [](const Tensor& t, double rate, Generator* g) {
        exponential_(t, rate, g);
        return Self();
      });
}

}  // namespace

void define_random(nb::module_& m) {
  define_generator(m);
  define_makers();
  define_fillers();
  def(kFunction, "_refuse_draws", "text",
      "While it is a text, which must live as long, random operators on this thread are RuntimeErrors with it. None allows them.",
      [](PyObject* text) -> PyObject* {
        ops::draws_refused = text == Py_None ? nullptr : PyUnicode_AsUTF8(text);
        if (PyErr_Occurred()) throw nb::python_error();
        Py_RETURN_NONE;
      });
  def(kFunction, "_set_random_algorithm", "pytorch", "Whether random numbers are PyTorch's.",
      [](bool pytorch) { set_random_algorithm(pytorch ? RandomAlgorithm::PyTorch : RandomAlgorithm::Philox); });
  def(kFunction, "_draws_as_pytorch", "", "Whether random numbers are PyTorch's.",
      [] { return random_algorithm() == RandomAlgorithm::PyTorch; });
  def(kFunction, "manual_seed", "seed", "Sets the seed of the default generator and returns it.",
      [m = nb::object(m)](PyObject* seed) -> PyObject* {
        manual_seed(seed_from(seed));
        return Py_NewRef(nb::object(m.attr("default_generator")).ptr());
      });
}

}  // namespace naru::py
