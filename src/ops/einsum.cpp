// Sums of products by an equation: two operands at a time, each time one batched product of matrices.
#include <algorithm>
#include <map>
#include <set>

#include "naru/other_names.h"
#include "ops/common.h"

namespace naru {
namespace {

// The name of a dimension: its letter, or -n for the n-th from the right of those that "..." stands for.
using Label = int;
using Labels = std::vector<Label>;

bool has(const Labels& labels, Label l) { return std::find(labels.begin(), labels.end(), l) != labels.end(); }

struct Labelled {
  Tensor tensor;
  Labels labels;
};

// Dimensions of one name become their diagonal.
Labelled without_repeats(Labelled x) {
  for (size_t i = 0; i < x.labels.size();) {
    const auto again = std::find(x.labels.begin() + static_cast<long>(i) + 1, x.labels.end(), x.labels[i]);
    if (again == x.labels.end()) {
      ++i;
      continue;
    }
    const Label name = x.labels[i];
    x.tensor = x.tensor.diagonal(0, static_cast<int64_t>(i), again - x.labels.begin());
    x.labels.erase(again);
    x.labels.erase(x.labels.begin() + static_cast<long>(i));
    x.labels.push_back(name);
  }
  return x;
}

// Summed over the dimensions that `gone` says.
template <class F>
Labelled summed(const Labelled& x, const F& gone) {
  Dims dims;
  Labels left;
  for (size_t i = 0; i < x.labels.size(); ++i)
    if (gone(x.labels[i]))
      dims.push_back(static_cast<int64_t>(i));
    else
      left.push_back(x.labels[i]);
  return dims.empty() ? x : Labelled{x.tensor.sum(dims), left};
}

// The dimensions in this order; those that it lacks have size 1.
Tensor ordered(const Labelled& x, const Labels& names) {
  Dims order;
  for (const Label l : names)
    if (has(x.labels, l)) order.push_back(std::find(x.labels.begin(), x.labels.end(), l) - x.labels.begin());
  Tensor t = x.tensor.permute(order);
  for (size_t i = 0; i < names.size(); ++i)
    if (!has(x.labels, names[i])) t = t.unsqueeze(static_cast<int64_t>(i));
  return t;
}

Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The product of two operands, summed over what is not in `keep`.
Labelled contract(Labelled a, Labelled b, const std::set<Label>& keep) {
  const auto kept = [&](Label l) { return keep.contains(l); };
  const Labels of_a = a.labels, of_b = b.labels;
  a = summed(a, [&](Label l) { return !kept(l) && !has(of_b, l); });
  b = summed(b, [&](Label l) { return !kept(l) && !has(of_a, l); });
  Labels batch, inner, rows, columns;
  for (const Label l : a.labels) (!has(b.labels, l) ? rows : kept(l) ? batch : inner).push_back(l);
  for (const Label l : b.labels)
    if (!has(a.labels, l)) columns.push_back(l);
  const Labels on_left = batch + rows + inner, on_right = batch + inner + columns;
  const Tensor left = ordered(a, on_left), right = ordered(b, on_right);
  std::map<Label, int64_t> sizes;
  const auto measure = [&](const Tensor& t, const Labels& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      const int64_t n = t.size(static_cast<int64_t>(i));
      const auto [at, fresh] = sizes.try_emplace(names[i], n);
      if (!fresh) at->second = at->second == 0 || n == 0 ? 0 : std::max(at->second, n);
    }
  };
  measure(left, on_left), measure(right, on_right);
  const auto shape = [&](const Labels& names) {
    Dims d;
    for (const Label l : names) d.push_back(sizes[l]);
    return d;
  };
  const int64_t n = product(shape(batch)), r = product(shape(rows)), k = product(shape(inner)), c = product(shape(columns));
  const Labels result = batch + rows + columns;
  return {left.expand(shape(on_left)).reshape({n, r, k}).bmm(right.expand(shape(on_right)).reshape({n, k, c})).reshape(shape(result)),
          result};
}

// The parts of a term around its "...".
struct Term {
  std::string_view head, tail;
  bool dots = false;
  explicit Term(std::string_view text) : head(text) {
    const size_t at = text.find("...");
    if (at == std::string_view::npos) return;
    dots = true;
    head = text.substr(0, at), tail = text.substr(at + 3);
  }
  size_t letters() const { return head.size() + tail.size(); }
  Labels labels(int64_t extra) const {
    Labels all(head.begin(), head.end());
    for (int64_t i = extra; i > 0; --i) all.push_back(static_cast<Label>(-i));
    return all + Labels(tail.begin(), tail.end());
  }
};

Labelled labelled(std::string_view equation, std::string_view text, const Tensor& operand, size_t number) {
  const Term term(text);
  for (const std::string_view part : {term.head, term.tail})
    for (const char& c : part)
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        throw RuntimeError("einsum(): invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]",
                           equation.find(c));
  const int64_t extra = operand.dim() - static_cast<int64_t>(term.letters());
  if (extra < 0 || (extra && !term.dots))
    throw RuntimeError(
        "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions ({}) for operand {}{}",
        term.letters(), operand.dim(), number, term.dots ? "" : " and no ellipsis was given");
  return {operand, term.labels(extra)};
}

// The result's dimensions, from what stands behind the arrow or, without one, from the letters that occur once.
Labels wanted_labels(const std::vector<Labelled>& operands, std::optional<std::string_view> output) {
  std::map<Label, int> met;
  int64_t widest = 0;
  for (const Labelled& x : operands)
    for (const Label l : x.labels) ++met[l], widest = std::max<int64_t>(widest, -l);
  if (!output) {
    Labels wanted = Term("...").labels(widest);
    for (const auto& [l, times] : met)
      if (l > 0 && times == 1) wanted.push_back(l);
    return wanted;
  }
  const Term term(*output);
  const Labels wanted = term.labels(term.dots ? widest : 0);
  for (const Label l : wanted) {
    if (l < 0) continue;
    const std::string name(1, static_cast<char>(l));
    if (!met.contains(l)) throw RuntimeError("einsum(): output subscript {} does not appear in the equation for any input operand", name);
    if (std::count(wanted.begin(), wanted.end(), l) > 1)
      throw RuntimeError("einsum(): output subscript {} appears more than once in the output", name);
  }
  return wanted;
}

void check_sizes(const std::vector<Labelled>& operands) {
  std::map<Label, int64_t> sizes;
  for (const Labelled& x : operands)
    for (size_t i = 0; i < x.labels.size(); ++i) {
      const int64_t n = x.tensor.size(static_cast<int64_t>(i));
      int64_t& known = sizes.try_emplace(x.labels[i], 1).first->second;
      if (n != 1 && known != 1 && known != n) {
        const std::string name = x.labels[i] > 0 ? std::string(1, static_cast<char>(x.labels[i])) : "...";
        throw RuntimeError("einsum(): operands do not broadcast with remapped shapes: subscript {} has size {} and {}", name, known, n);
      }
      if (known == 1) known = n;
    }
}

}  // namespace

Tensor einsum(std::string_view given, const std::vector<Tensor>& operands) {
  if (operands.empty()) throw RuntimeError("einsum(): must provide at least one operand");
  for (const Tensor& t : operands) ops::require_defined(t, "einsum", "operands");
  std::string equation(given);
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  const std::string_view all = equation, inputs = all.substr(0, arrow);
  const std::optional<std::string_view> output = arrow == std::string::npos ? std::nullopt : std::optional(all.substr(arrow + 2));
  std::vector<std::string_view> terms;
  for (size_t start = 0; start <= inputs.size();) {
    const size_t end = std::min(inputs.find(',', start), inputs.size());
    terms.push_back(inputs.substr(start, end - start));
    start = end + 1;
  }
  if (terms.size() != operands.size())
    throw RuntimeError("einsum(): {} operands were provided than specified in the equation",
                       operands.size() > terms.size() ? "more" : "fewer");
  std::vector<Labelled> list;
  for (size_t i = 0; i < terms.size(); ++i) list.push_back(labelled(all, terms[i], operands[i], i));
  const Labels wanted = wanted_labels(list, output);
  check_sizes(list);
  Labelled result = without_repeats(list[0]);
  for (size_t i = 1; i < list.size(); ++i) {
    std::set<Label> keep(wanted.begin(), wanted.end());
    for (size_t later = i + 1; later < list.size(); ++later) keep.insert(list[later].labels.begin(), list[later].labels.end());
    result = contract(std::move(result), without_repeats(list[i]), keep);
  }
  return ordered(summed(result, [&](Label l) { return !has(wanted, l); }), wanted);
}

}  // namespace naru
