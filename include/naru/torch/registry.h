// The operators and classes that libraries register by name (naru/torch/library.h has libtorch's macros for it). There is one registry in a
// process: C++ calls operators through it, and Python takes what was registered since it last looked.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "naru/torch/ivalue.h"

namespace naru::library {

using Stack = std::vector<IValue>;
// A function of arguments that are not typed. `op` is its name, for messages.
using Function = std::function<IValue(const char* op, Stack& arguments)>;

// What was registered. An error in a static initializer of a library would end the program, so it is kept here instead.
struct Registration {
  enum class Kind { Operator, Kernel, Class, Method, Error } kind;
  std::string name;  // "space::operator", or of a class
  std::string text;  // the schema "(Tensor x) -> Tensor", a kernel's dispatch key, a method's name, or the message of an error
  Function function;
  bool is_static = false;  // a method without an object
};

// Declares an operator by "name(Tensor x) -> Tensor" in a namespace; "name.overload" counts as "name".
void define_operator(const std::string& space, const std::string& schema);
// Gives an operator its function for a dispatch key: "CPU", "CUDA", "Autograd", "CompositeImplicitAutograd" ...
void add_kernel(const std::string& space, const std::string& name, const std::string& key, Function function);
// Declares a class with the C++ type `type_name` (typeid), and adds a method to it; "__init__" makes an object.
void define_class(const std::string& space, const std::string& name, const char* type_name);
void add_method(const std::string& space, const std::string& name, const std::string& method, Function function, bool is_static = false);
// The name "space::Class" of an object's class; "" if it was not declared.
std::string class_of(const CustomClassHolder& object);

bool has_operator(const std::string& name);
// Calls "space::operator": the function for Autograd, unless this thread is below autograd; else that for the tensors' device, without
// history; else the composite one. Throws NotImplementedError if there is none, and RuntimeError for an operator that does not exist.
IValue call_operator(const std::string& name, Stack arguments);
// True within an operator's function for Autograd that has said so (AutoDispatchBelowAutograd).
bool below_autograd() noexcept;
bool set_below_autograd(bool on) noexcept;

// What was registered since the last call.
std::vector<Registration> take_registrations();

// Calls body(first, last) for pieces of [begin, end) on the threads for computation. No piece is smaller than `grain`, but for the last.
void parallel_for(int64_t begin, int64_t end, int64_t grain, const std::function<void(int64_t, int64_t)>& body);
// The number of this thread's piece, and whether it runs one.
int piece_number() noexcept;
bool in_parallel_region() noexcept;

}  // namespace naru::library
