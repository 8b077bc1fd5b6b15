// Expressions as text: each node of a graph becomes a C constant, one per line.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/expr.h"
#include "ir/reduce.h"
#include "render/c/dialect.h"

namespace naru::render::c {

// "i32" for I32; "bool" for Bool.
const char* name_of(ir::VType type) noexcept;
// The type in which products and sums are computed: unsigned for integers, which wrap around.
const char* arithmetic(ir::VType type) noexcept;
// The type of an element in memory: "u8" for Bool, "u16" for F16.
const char* stored(DType type) noexcept;
// Converts an element in memory to a value, and a value to an element.
std::string loaded(DType type, const std::string& element);
std::string to_store(DType type, const std::string& value);
// The value with these bits.
std::string literal(ir::VType type, uint64_t bits);

// The text for the leaves of a graph.
struct Leaves {
  std::function<std::string(uint64_t slot, DType type)> input;
  std::function<std::string(uint64_t slot, ir::VType type)> param;
  std::string index;
};

// Lines that define every node that `results` need, under the names node(prefix, id).
std::string expressions(const ir::Graph& graph, std::span<const uint32_t> results, const Leaves& leaves, const Target& target,
                        const std::string& prefix, const std::string& indent);
std::string node(const std::string& prefix, uint32_t id);

// Result i of a kernel whose nodes have these names, as an element is stored. element: the text of an input's element in memory, so that copies keep
// all bits, those of a NaN too.
std::string result_to_store(const ir::MapKernel& kernel, size_t i, const std::string& prefix,
                            const std::function<std::string(uint64_t slot)>& element = {});

// The text of FUNCTION T combine(T a, T b) of ir/reduce.h, with the given name.
std::string combine_function(ir::ReduceOp op, ir::VType type, const Target& target, const std::string& name = "combine");
// Accumulators in memory: their type (a Bool is a byte), loading one, and storing one.
std::string stored_value(ir::VType type);
std::string got(ir::VType type, const std::string& x);
std::string put(ir::VType type, const std::string& x);
// A value converted to an element type, as Prim::Convert does, and to the form that is stored.
std::string converted(ir::VType from, DType to, const std::string& value, const Target& target);

}  // namespace naru::render::c
