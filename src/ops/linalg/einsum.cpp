// einsum, two operands at a time: one batched matrix product, or an elementwise product if nothing is summed.
#include <array>

#include "naru/ops/aliases.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

// Dimension names, one char each: a letter, or n for the n-th dimension from the right within "..." (at most 64, which is below 'A'). In a parsed
// term, '.' marks the ellipsis.
using Labels = std::string;
using Sizes = std::array<int64_t, 128>;
constexpr char kDots = '.';

bool has(const Labels& labels, char l) { return labels.find(l) != Labels::npos; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Labelled {
  Tensor tensor;
  Labels labels;
};

// Replaces dimensions with the same name by their diagonal.
Labelled without_repeats(Labelled x, size_t number) {
  for (size_t i = 0; i < x.labels.size();) {
    const char name = x.labels[i];
    const size_t again = x.labels.find(name, i + 1);
    if (again == Labels::npos) {
      ++i;
      continue;
    }
    const auto first = static_cast<int64_t>(i), second = static_cast<int64_t>(again);
    if (x.tensor.size(first) != x.tensor.size(second))
      throw RuntimeError("einsum(): subscript {} is repeated for operand {} but the sizes don't match, {} != {}", name, number,
                         x.tensor.size(second), x.tensor.size(first));
    x.tensor = x.tensor.diagonal(0, first, second);
    x.labels.erase(again, 1).erase(i, 1).push_back(name);
  }
  return x;
}

// Sums over the dimensions for which gone(name) is true.
template <class F>
Labelled summed(Labelled x, const F& gone) {
  Dims dims;
  Labels left;
  for (size_t i = 0; i < x.labels.size(); ++i)
    if (gone(x.labels[i]))
      dims.push_back(static_cast<int64_t>(i));
    else
      left.push_back(x.labels[i]);
  return dims.empty() ? std::move(x) : Labelled{x.tensor.sum(dims), left};
}

// Permutes the dimensions into this order; missing ones get size 1.
Tensor ordered(const Labelled& x, const Labels& names) {
  if (x.labels == names) return x.tensor;
  Dims order;
  for (const char l : names)
    if (const size_t at = x.labels.find(l); at != Labels::npos) order.push_back(static_cast<int64_t>(at));
  Tensor t = x.tensor.permute(order);
  for (size_t i = 0; i < names.size(); ++i)
    if (!has(x.labels, names[i])) t = t.unsqueeze(static_cast<int64_t>(i));
  return t;
}

void measure(Sizes& sizes, const Labelled& x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    int64_t& known = sizes[static_cast<size_t>(x.labels[i])];
    if (known == 1) known = x.tensor.size(static_cast<int64_t>(i));
  }
}

// The sum of products over `inner` as one batched matrix product.
Labelled product_of_matrices(const Labelled& a, const Labelled& b, const Labels& batch, const Labels& inner) {
  Labels rows, columns;
  for (const char l : a.labels)
    if (!has(b.labels, l)) rows.push_back(l);
  for (const char l : b.labels)
    if (!has(a.labels, l)) columns.push_back(l);
  Sizes sizes;
  sizes.fill(1);
  measure(sizes, a), measure(sizes, b);
  const auto shape = [&](const Labels& names) {
    Dims d;
    for (const char l : names) d.push_back(sizes[static_cast<size_t>(l)]);
    return d;
  };
  const int64_t n = product(shape(batch)), r = product(shape(rows)), k = product(shape(inner)), c = product(shape(columns));
  const auto matrices = [&](const Labelled& x, const Labels& names, const Dims& folded) {
    const Tensor t = ordered(x, names);
    const Dims whole = shape(names);
    return (t.sizes() == whole ? t : t.expand(whole)).reshape(folded);
  };
  const Labels result = batch + rows + columns;
  return {matrices(a, batch + rows + inner, {n, r, k}).bmm(matrices(b, batch + inner + columns, {n, k, c})).reshape(shape(result)), result};
}

// The product of two operands, summed over names not in `keep`. `alike`: the original operands have the same dtype.
Labelled contract(Labelled a, Labelled b, const Labels& keep, bool alike) {
  a = summed(std::move(a), [&](char l) { return !has(keep, l) && !has(b.labels, l); });
  b = summed(std::move(b), [&](char l) { return !has(keep, l) && !has(a.labels, l); });
  Labels batch, inner, all = a.labels;
  for (const char l : a.labels)
    if (has(b.labels, l)) (has(keep, l) ? batch : inner).push_back(l);
  for (const char l : b.labels)
    if (!has(a.labels, l)) all.push_back(l);
  if (inner.empty()) return {ordered(a, all) * ordered(b, all), all};
  if (alike && a.tensor.dtype() != b.tensor.dtype()) {  // sums of small integers have become int64
    const DType common = promote(a.tensor.dtype(), b.tensor.dtype());
    a.tensor = a.tensor.to(common), b.tensor = b.tensor.to(common);
  }
  return product_of_matrices(a, b, batch, inner);
}

// Parses equation[begin, end) into labels: the term of the operand with this number, or of the result if none.
Labels parsed(std::string_view equation, size_t begin, size_t end, std::optional<size_t> operand) {
  Labels labels;
  for (size_t i = begin; i < end; ++i) {
    const char c = equation[i];
    if (is_letter(c)) {
      labels.push_back(c);
    } else if (c == '.') {
      if (has(labels, kDots))
        throw operand ? RuntimeError("einsum(): found '.' for operand {} for which an ellipsis was already found", *operand)
                      : RuntimeError("einsum(): found '.' for output but an ellipsis (...) was already found");
      if (equation.substr(i, end - i).substr(0, 3) != "...")
        throw operand ? RuntimeError("einsum(): found '.' for operand {} that is not part of any ellipsis", *operand)
                      : RuntimeError("einsum(): found '.' for output that is not part of any ellipsis (...)");
      labels.push_back(kDots);
      i += 2;
    } else if (c != ' ') {
      throw RuntimeError("einsum(): invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]", i);
    }
  }
  return labels;
}

// Replaces "..." by the names of this many dimensions.
Labels spelt(Labels term, int64_t dots) {
  const size_t at = term.find(kDots);
  if (at == Labels::npos) return term;
  Labels names;
  for (int64_t i = dots; i > 0; --i) names.push_back(static_cast<char>(i));
  return term.replace(at, 1, names);
}

Labelled labelled(Labels term, const Tensor& operand, size_t number) {
  const bool dots = has(term, kDots);
  const int64_t letters = static_cast<int64_t>(term.size()) - dots, extra = operand.dim() - letters;
  if (extra != 0 && !dots)
    throw RuntimeError(
        "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions ({}) for operand {} and no "
        "ellipsis was given",
        letters, operand.dim(), number);
  if (extra < 0)
    throw RuntimeError("einsum(): the number of subscripts in the equation ({}) is more than the number of dimensions ({}) for operand {}",
                       letters, operand.dim(), number);
  return {operand, spelt(std::move(term), extra)};
}

// The result's labels: from the text after the arrow or, without an arrow, the letters that occur once in `written`.
Labels wanted_labels(std::string_view equation, size_t arrow, const Labels& written) {
  int64_t widest = 0;
  for (const char l : written)
    if (!is_letter(l)) widest = std::max<int64_t>(widest, l);
  if (arrow == std::string_view::npos) {
    Labels once;
    for (const char l : written)
      if (is_letter(l) && std::count(written.begin(), written.end(), l) == 1) once.push_back(l);
    std::sort(once.begin(), once.end());
    return spelt(Labels(1, kDots), widest) + once;
  }
  const Labels wanted = spelt(parsed(equation, arrow + 2, equation.size(), std::nullopt), widest);
  for (const char l : wanted) {
    if (std::count(wanted.begin(), wanted.end(), l) > 1)
      throw RuntimeError("einsum(): output subscript {} appears more than once in the output", l);
    if (!has(written, l)) throw RuntimeError("einsum(): output subscript {} does not appear in the equation for any input operand", l);
  }
  return wanted;
}

void check_sizes(const std::vector<Labelled>& operands) {
  Sizes sizes;
  sizes.fill(1);
  for (size_t number = 0; number < operands.size(); ++number) {
    const Labelled& x = operands[number];
    for (size_t i = 0; i < x.labels.size(); ++i) {
      const char l = x.labels[i];
      const int64_t n = x.tensor.size(static_cast<int64_t>(i)), known = sizes[static_cast<size_t>(l)];
      if (n == 1 || known == 1 || known == n) continue;
      if (is_letter(l))
        throw RuntimeError("einsum(): subscript {} has size {} for operand {} which does not broadcast with previously seen size {}", l, n,
                           number, known);
      const auto covered = std::count_if(x.labels.begin(), x.labels.end(), [](char c) { return !is_letter(c); });
      throw RuntimeError(
          "einsum(): dimension {} covered by ellipsis in operand {} has size {} which does not broadcast with previously seen ellipsis "
          "with "
          "size {} for the respective dimension",
          covered - l, number, n, known);
    }
    measure(sizes, x);
  }
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  if (operands.empty()) throw ValueError("einsum(): must provide at least one operand");
  for (const Tensor& t : operands) ops::require_defined(t, "einsum", "operands");
  const size_t arrow = equation.find("->");
  const std::string_view inputs = equation.substr(0, arrow);
  std::vector<Labelled> list;
  Labels written;
  for (size_t start = 0; start <= inputs.size();) {
    const size_t number = list.size(), end = std::min(inputs.find(',', start), inputs.size());
    if (number == operands.size()) throw RuntimeError("einsum(): fewer operands were provided than specified in the equation");
    Labelled x = labelled(parsed(equation, start, end, number), operands[number], number);
    written += x.labels;
    list.push_back(without_repeats(std::move(x), number));
    start = end + 1;
  }
  if (list.size() < operands.size()) throw RuntimeError("einsum(): more operands were provided than specified in the equation");
  const Labels wanted = wanted_labels(equation, arrow, written);
  check_sizes(list);
  const bool alike = std::all_of(operands.begin(), operands.end(), [&](const Tensor& t) { return t.dtype() == operands[0].dtype(); });
  Labelled result = std::move(list[0]);
  for (size_t i = 1; i < list.size(); ++i) {
    Labels keep = wanted;
    for (size_t later = i + 1; later < list.size(); ++later) keep += list[later].labels;
    result = contract(std::move(result), std::move(list[i]), keep, alike);
  }
  return ordered(summed(std::move(result), [&](char l) { return !has(wanted, l); }), wanted);
}

}  // namespace naru
