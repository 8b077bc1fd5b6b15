// Compressed sparse tensors, of elements or of blocks: CSR, CSC, BSR and BSC, with leading batch dimensions and trailing dense dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/type_names.h"

namespace naru {

using ops::CompressedForm;

namespace {

Options integers_like(const Tensor& t) { return Options(DType::I64, t.device()); }
Tensor count_to(int64_t n, const Tensor& like) { return arange(0, n, 1, integers_like(like)); }

// Concatenates sizes.
Dims joined(std::span<const int64_t> front, std::initializer_list<int64_t> middle, std::span<const int64_t> back) {
  Dims all(front);
  for (const int64_t n : middle) all.push_back(n);
  for (const int64_t n : back) all.push_back(n);
  return all;
}

Tensor made_of(const Tensor& compressed, const Tensor& plain, const Tensor& values, const Dims& sizes, Layout layout, bool sorted = true) {
  auto parts = make_ref<ops::SparseParts>();
  parts->layout = layout, parts->indices = plain, parts->crow = compressed, parts->values = values.detach(), parts->coalesced = sorted;
  return ops::like_with_values(ops::sparse_shell(std::move(parts), sizes), values);
}

void check_lines(const Tensor& compressed, int64_t stored, int64_t most, const char* name, const char* across) {
  const int64_t lines = compressed.size(-1) - 1;
  const std::vector<int64_t> begins = compressed.reshape({-1}).to_ints();
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto at = static_cast<int64_t>(i) % (lines + 1);
    if (at == 0 && begins[i] != 0) throw RuntimeError("`{}[..., 0] == 0` is not satisfied. (got {})", name, begins[i]);
    if (at == lines && begins[i] != stored)
      throw RuntimeError("`{}[..., -1] == nnz` is not satisfied. (got {}, {} values)", name, begins[i], stored);
    if (at == 0) continue;
    if (const int64_t n = begins[i] - begins[i - 1]; n < 0 || n > most)
      throw RuntimeError("`0 <= {0}[..., 1:] - {0}[..., :-1] <= {1}` is not satisfied. (got {2})", name, across, n);
  }
}

void check_plain(const Tensor& plain, int64_t most, const CompressedForm& f) {
  if (plain.numel() == 0) return;
  const int64_t least = amin(plain).item().to_int(), greatest = amax(plain).item().to_int();
  if (least < 0 || greatest >= most)
    throw RuntimeError("`0 <= {} < {}` is not satisfied. (got {}, of {})", f.plain, f.across, least < 0 ? least : greatest, most);
}

}  // namespace

namespace ops {

const CompressedForm& form_of(Layout layout) {
  static constexpr CompressedForm kForms[] = {{true, false, "crow_indices", "col_indices", "rows", "nrows", "ncols"},
                                              {false, false, "ccol_indices", "row_indices", "columns", "ncols", "nrows"},
                                              {true, true, "crow_indices", "col_indices", "row blocks", "nrowblocks", "ncolblocks"},
                                              {false, true, "ccol_indices", "row_indices", "column blocks", "ncolblocks", "nrowblocks"}};
  return kForms[static_cast<size_t>(layout) - static_cast<size_t>(Layout::SparseCsr)];
}

int64_t batch_dims(const Tensor& t) { return parts_of(t).crow.dim() - 1; }

std::array<int64_t, 2> block_of(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  if (!form_of(p.layout).blocks) return {1, 1};
  const int64_t at = batch_dims(t) + 1;
  return {p.values.size(at), p.values.size(at + 1)};
}

namespace {
// The row (column) of each stored element or block, numbered through all batches.
Tensor lines_of(const Tensor& compressed) {
  const int64_t lines = compressed.size(-1) - 1, all = compressed.numel() / (lines + 1);
  const Tensor begins = compressed.to(DType::I64).reshape({all, lines + 1});
  const Tensor counts = (begins.narrow(1, 1, lines) - begins.narrow(1, 0, lines)).reshape({-1});
  return repeat_interleave(count_to(all * lines, compressed), counts);
}
}  // namespace

bool rises_in_lines(const Tensor& compressed, const Tensor& plain, int64_t across) {
  return compressed.device().is_meta() || rises(lines_of(compressed) * across + plain.reshape({-1}));
}

Tensor compressed_coordinates(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  const CompressedForm& f = form_of(p.layout);
  const int64_t batches = batch_dims(t), lines = p.crow.size(-1) - 1;
  const Tensor number = lines_of(p.crow);
  const Operand in_batch(std::max<int64_t>(lines, 1));
  const Tensor line = batches ? remainder(number, in_batch) : number, plain = p.indices.to(DType::I64).reshape({-1});
  Tensor batch = batches ? floor_divide(number, in_batch) : Tensor();
  Tensor row = f.rows ? line : plain, column = f.rows ? plain : line;
  if (f.blocks) {
    const auto [high, wide] = block_of(t);
    const Dims whole{number.numel(), high, wide};
    const auto spread = [&](const Tensor& x) { return x.view({-1, 1, 1}).expand(whole).reshape({-1}); };
    row = (row.view({-1, 1, 1}) * high + count_to(high, t).view({1, -1, 1})).expand(whole).reshape({-1});
    column = (column.view({-1, 1, 1}) * wide + count_to(wide, t)).expand(whole).reshape({-1});
    if (batches) batch = spread(batch);
  }
  std::vector<Tensor> all_rows(static_cast<size_t>(batches));
  for (int64_t d = batches - 1; d >= 0; --d) {
    const Operand n(std::max<int64_t>(t.size(d), 1));
    all_rows[static_cast<size_t>(d)] = remainder(batch, n);
    batch = floor_divide(batch, n);
  }
  all_rows.push_back(row), all_rows.push_back(column);
  return stack(all_rows);
}

Tensor elements_of(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  const Tensor values = values_of(t);
  if (p.layout == Layout::SparseCoo) return values;
  const auto own = static_cast<size_t>(batch_dims(t) + (form_of(p.layout).blocks ? 3 : 1));
  if (own == 1) return values;
  const std::span<const int64_t> sizes(values.sizes());
  return values.reshape(joined({}, {product(Dims(sizes.first(own)))}, sizes.subspan(own)));
}
Tensor like_with_elements(const Tensor& t, const Tensor& elements) {
  return like_with_values(t, elements.reshape(parts_of(t).values.sizes()));
}

Tensor compressed(const Tensor& given, Layout layout, int64_t batches, std::array<int64_t, 2> block, DType integers) {
  const CompressedForm& f = form_of(layout);
  const Tensor coo = coalesce(given), values = values_of(coo);
  const Tensor& at = parts_of(coo).indices;
  const std::span<const int64_t> sizes(coo.sizes()), dense = std::span<const int64_t>(values.sizes()).subspan(1);
  const auto before = static_cast<size_t>(batches);
  const Dims batch(sizes.first(before));
  const auto [high, wide] = block;
  if (sizes[before] % high || sizes[before + 1] % wide)
    throw RuntimeError("dense_to_{}: tensor sparse size ({},{}) must be divisible by given blocksize ({},{})", name_of(layout),
                       sizes[before], sizes[before + 1], high, wide);
  const int64_t rows = sizes[before] / high, columns = sizes[before + 1] / wide, lines = f.rows ? rows : columns;
  const Operand across(std::max<int64_t>(f.rows ? columns : rows, 1));
  const Tensor row = at.select(0, batches), column = at.select(0, batches + 1);
  const Tensor up = f.blocks ? floor_divide(row, Operand(high)) : row, left = f.blocks ? floor_divide(column, Operand(wide)) : column;
  const Tensor number = batches ? keys_of(at.narrow(0, 0, batches), coo.sizes()) * lines : Tensor();
  const Tensor line = f.rows ? up : left;
  Tensor keys = (number.defined() ? number + line : line) * across + (f.rows ? left : up), stored = values;
  if (f.blocks) {
    const auto [found, place, counts] = unique(keys);
    const int64_t n = found.numel();
    const Tensor within = place * (high * wide) + (row - up * high) * wide + (column - left * wide);
    const Tensor flat = zeros(joined({}, {n * high * wide}, dense), Options(values.dtype(), values.device()));
    stored = index_add(flat, 0, within, values).view(joined({}, {n, high, wide}, dense));
    keys = found;
  } else if (!f.rows) {
    const auto [sorted, order] = sort(keys, 0);
    stored = index_select(values, 0, order), keys = sorted;
  }
  const int64_t all = product(batch), each = all ? keys.numel() / all : 0;
  Tensor begins = searchsorted(floor_divide(keys, across), count_to(all * lines + 1, coo));
  const Tensor plain = remainder(keys, across).to(integers);
  if (batches == 0) return made_of(begins.to(integers), plain, stored, coo.sizes(), layout);
  const Tensor first = count_to(all, coo).view({-1, 1});
  begins = index_select(begins, 0, (first * lines + count_to(lines + 1, coo)).reshape({-1})).view({all, lines + 1}) - first * each;
  for (const int64_t n : begins.select(1, lines).to_ints())
    if (n != each) throw RuntimeError("Expect the same number of specified elements per batch.");
  const std::span<const int64_t> own = std::span<const int64_t>(stored.sizes()).subspan(1);
  return made_of(begins.to(integers).view(joined(batch, {lines + 1}, {})), plain.view(joined(batch, {each}, {})),
                 stored.view(joined(batch, {each}, own)), coo.sizes(), layout);
}

Tensor in_layout_of(const Tensor& coo, const Tensor& t) {
  return is_compressed(t) ? compressed(coo, parts_of(t).layout, batch_dims(t), block_of(t), parts_of(t).indices.dtype()) : coo;
}

Tensor compressed_to(const Tensor& t, Device device, const Tensor& values) {
  const SparseParts& p = parts_of(t);
  return made_of(p.crow.to(device), p.indices.to(device), values, t.sizes(), p.layout, p.coalesced);
}

Tensor compressed_permute(const Tensor& t, const Dims& order) {
  const SparseParts& p = parts_of(t);
  const CompressedForm& f = form_of(p.layout);
  const int64_t first = batch_dims(t), inner = f.blocks ? 3 : 1;
  const auto kind = [first](int64_t d) -> std::string_view { return d < first ? "Batch" : d < first + 2 ? "Sparse" : "Dense"; };
  Dims sizes, lines, places;
  for (int64_t i = 0; i < t.dim(); ++i) {
    const int64_t d = order[static_cast<size_t>(i)];
    if (kind(i) != kind(d))
      throw RuntimeError("transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got {}({}) and {}({})",
                         std::min(i, d), kind(std::min(i, d)), std::max(i, d), kind(std::max(i, d)));
    sizes.push_back(t.size(d));
    if (i < first) lines.push_back(d);
  }
  const bool turned = order[static_cast<size_t>(first)] != first;
  lines.push_back(first);
  places = lines;
  for (int64_t k = 1; k < inner; ++k) places.push_back(turned ? first + inner - k : first + k);
  for (int64_t i = first + 2; i < t.dim(); ++i) places.push_back(order[static_cast<size_t>(i)] - 2 + inner);
  constexpr Layout kTurned[] = {Layout::SparseCsc, Layout::SparseCsr, Layout::SparseBsc, Layout::SparseBsr};
  const Layout layout = turned ? kTurned[static_cast<size_t>(p.layout) - static_cast<size_t>(Layout::SparseCsr)] : p.layout;
  return made_of(p.crow.permute(lines), p.indices.permute(lines), values_of(t).permute(places), sizes, layout, p.coalesced);
}

Tensor compressed_select(const Tensor& t, int64_t d, int64_t index) {
  const SparseParts& p = parts_of(t);
  Dims sizes = t.sizes();
  sizes.erase(static_cast<size_t>(d));
  if (d < batch_dims(t))
    return made_of(p.crow.select(d, index), p.indices.select(d, index), values_of(t).select(d, index), sizes, p.layout, p.coalesced);
  const int64_t own = form_of(p.layout).blocks ? 3 : 1;
  return made_of(p.crow, p.indices, values_of(t).select(d - 2 + own, index), sizes, p.layout, p.coalesced);
}

}  // namespace ops

namespace {

Tensor whole_numbers(const Tensor& t, const char* name, const Tensor& values) {
  if (t.dtype() != DType::I32 && t.dtype() != DType::I64)
    throw RuntimeError("{} must be an int32 or int64 tensor, but got: torch.{}", name, name_of(t.dtype()));
  return t.detach().to(values.device(), t.dtype(), false, true).contiguous();
}

// The shape implied by the parts if none is given: the number of columns (rows) is the greatest plain index + 1.
Dims sizes_of(const Tensor& compressed, const Tensor& plain, const Tensor& values, Layout layout) {
  const CompressedForm& f = ops::form_of(layout);
  const auto batches = static_cast<size_t>(compressed.dim() - 1);
  const size_t at = batches + 1;
  const int64_t high = f.blocks ? values.sizes()[at] : 1, wide = f.blocks ? values.sizes()[at + 1] : 1;
  const int64_t lines = compressed.size(-1) - 1, across = plain.numel() ? amax(plain).item().to_int() + 1 : 0;
  return joined(std::span<const int64_t>(values.sizes()).first(batches),
                {(f.rows ? lines : across) * high, (f.rows ? across : lines) * wide},
                std::span<const int64_t>(values.sizes()).subspan(at + (f.blocks ? 2 : 0)));
}

void check_ranks(const Tensor& compressed, const Tensor& plain, const Tensor& values, const CompressedForm& f) {
  if (compressed.dim() < 1) throw RuntimeError("{} must have dimensionality >= 1 but got {}", f.compressed, compressed.dim());
  if (plain.dim() != compressed.dim())
    throw RuntimeError("{} and {} dimensionalities must be equal but got {} and {}, respectively", f.compressed, f.plain, compressed.dim(),
                       plain.dim());
  if (const int64_t least = compressed.dim() + (f.blocks ? 2 : 0); values.dim() < least)
    throw RuntimeError("values must have dimensionality > sum of batch and block dimensionalities (={} + {}) but got {}",
                       compressed.dim() - 1, f.blocks ? 2 : 0, values.dim());
  if (compressed.size(-1) < 1) throw RuntimeError("{}.shape[-1] must be at least 1, got {}", f.compressed, compressed.size(-1));
  const int64_t at = plain.dim() - 1;
  if (plain.size(at) != values.size(at))
    throw RuntimeError("{}.shape[-1] must be equal to nnz (={}) as defined by values.shape[{}], but got {}", f.plain, values.size(at), at,
                       plain.size(at));
}

}  // namespace

Tensor sparse_compressed_tensor(const Tensor& given_lines, const Tensor& given_plain, const Tensor& values, const OptionalDims& given,
                                Layout layout, bool sorted) {
  if (layout < Layout::SparseCsr)
    throw RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got {}", ops::torch_layout(layout));
  const CompressedForm& f = ops::form_of(layout);
  for (const Tensor* t : {&given_lines, &given_plain, &values}) ops::require_defined(*t, "sparse_compressed_tensor", "an argument");
  Tensor compressed = whole_numbers(given_lines, f.compressed, values), plain = whole_numbers(given_plain, f.plain, values);
  if (sorted && compressed.dtype() != plain.dtype())
    throw RuntimeError("{} and {} must have the same dtype, but got {} and {}", f.compressed, f.plain, ops::torch_name(compressed.dtype()),
                       ops::torch_name(plain.dtype()));
  const DType integers = promote(compressed.dtype(), plain.dtype());
  compressed = compressed.to(integers), plain = plain.to(integers);
  check_ranks(compressed, plain, values, f);
  const Dims sizes = given ? *given : sizes_of(compressed, plain, values, layout);
  const int64_t batches = compressed.dim() - 1, dense = values.dim() - batches - (f.blocks ? 3 : 1);
  if (static_cast<int64_t>(sizes.size()) != batches + 2 + dense)
    throw RuntimeError("tensor dimensionality must be sum of batch, base, and dense dimensionalities (={} + {} + {}) but got {}", batches,
                       2, dense, sizes.size());
  const auto first = static_cast<size_t>(batches);
  const int64_t high = f.blocks ? values.size(batches + 1) : 1, wide = f.blocks ? values.size(batches + 2) : 1;
  if (high < 1 || wide < 1 || sizes[first] % high || sizes[first + 1] % wide)
    throw RuntimeError("tensor shape[{0}] (={1}) must be divisible with blocksize[{2}] (={3}) as defined by values shape",
                       batches + !(high < 1 || sizes[first] % high), high < 1 || sizes[first] % high ? sizes[first] : sizes[first + 1],
                       static_cast<int>(!(high < 1 || sizes[first] % high)), high < 1 || sizes[first] % high ? high : wide);
  const int64_t lines = f.rows ? sizes[first] / high : sizes[first + 1] / wide,
                across = f.rows ? sizes[first + 1] / wide : sizes[first] / high;
  if (compressed.size(-1) != lines + 1)
    throw RuntimeError("{}.shape[-1] must be equal to the number of {} + 1 (={}), but got {}", f.compressed, f.along, lines + 1,
                       compressed.size(-1));
  const auto batch_of = [&](const Dims& d) { return Dims(std::span<const int64_t>(d).first(first)); };
  const Dims batch = batch_of(sizes);
  if (!(batch_of(compressed.sizes()) == batch && batch_of(plain.sizes()) == batch && batch_of(values.sizes()) == batch))
    throw RuntimeError("all batch dimensions of {} (={}), {} (={}), and values (={}) must be equal to tensor batch dimensions (={})",
                       f.compressed, batch_of(compressed.sizes()).str(), f.plain, batch_of(plain.sizes()).str(),
                       batch_of(values.sizes()).str(), batch.str());
  if (!(Dims(std::span<const int64_t>(sizes).subspan(first + 2)) ==
        Dims(std::span<const int64_t>(values.sizes()).subspan(values.sizes().size() - static_cast<size_t>(dense)))))
    throw RuntimeError("tensor shape {} must end with the dense dimensions of values, {}", sizes.str(), values.sizes().str());
  if (!compressed.device().is_meta()) {
    check_lines(compressed, plain.size(-1), across, f.compressed, f.across);
    check_plain(plain, across, f);
  }
  const bool rises = ops::rises_in_lines(compressed, plain, across);
  if (sorted && !rises)
    throw RuntimeError(
        "`{1}[..., {0}[..., i - 1]:{0}[..., i]] for all i = 1, ..., {2} are sorted and distinct along the last dimension values` "
        "is not satisfied.",
        f.compressed, f.plain, f.count);
  return made_of(compressed, plain, values, sizes, layout, rises);
}

namespace {

Tensor index_part(const Tensor& t, bool rows, bool of_lines, const char* op) {
  ops::require_defined(t, op, "input");
  if (!is_compressed(t) || ops::form_of(layout(t)).rows != rows)
    throw RuntimeError("{} expected sparse {} compressed tensor layout but got {}", op, rows ? "row" : "column",
                       ops::torch_layout(layout(t)));
  return of_lines ? ops::parts_of(t).crow : ops::parts_of(t).indices;
}

}  // namespace

Tensor crow_indices(const Tensor& t) { return index_part(t, true, true, "crow_indices"); }
Tensor col_indices(const Tensor& t) { return index_part(t, true, false, "col_indices"); }
Tensor ccol_indices(const Tensor& t) { return index_part(t, false, true, "ccol_indices"); }
Tensor row_indices(const Tensor& t) { return index_part(t, false, false, "row_indices"); }

Tensor to_sparse_compressed(const Tensor& t, Layout wanted, const OptionalDims& blocksize, std::optional<int64_t> dense_dims) {
  if (wanted < Layout::SparseCsr) throw RuntimeError("to_sparse: wanted a sparse compressed layout, got torch.{}", name_of(wanted));
  const CompressedForm& f = ops::form_of(wanted);
  const std::string op = fmt::format("to_{}", name_of(wanted));
  ops::require_defined(t, op.c_str(), "input");
  std::array<int64_t, 2> block{1, 1};
  if (f.blocks) {
    if (!blocksize) throw RuntimeError("{}: wanted a blocksize, (rows, columns) of a block", op);
    const size_t sides = blocksize->size();  // a single number is used for both
    if ((sides != 1 && sides != 2) || (*blocksize)[0] < 1 || (*blocksize)[sides - 1] < 1)
      throw RuntimeError("dense_to_{}: blocksize needs to be a tuple of size 2, but got {} (wanted two positive numbers, got {})",
                         name_of(wanted), blocksize->size(), blocksize->str());
    block = {(*blocksize)[0], (*blocksize)[sides - 1]};
  }
  if (ops::has_sparse_form(t)) {
    if (dense_dims && *dense_dims != dense_dim(t))
      throw RuntimeError("{}: a sparse tensor keeps its {} dense dimensions, got dense_dim={}", op, dense_dim(t), *dense_dims);
    if (layout(t) == wanted && ops::block_of(t) == block) return t;
    if (is_compressed(t)) return ops::compressed(ops::as_coo(t), wanted, ops::batch_dims(t), block, ops::parts_of(t).indices.dtype());
    if (sparse_dim(t) != 2)
      throw RuntimeError("coo_to_{}: conversion from Sparse to {} for input tensors with sparse_dim()!=2 is not supported", name_of(wanted),
                         ops::torch_layout(wanted));
    return ops::compressed(t, wanted, 0, block);
  }
  const int64_t dense = dense_dims.value_or(0), batches = t.dim() - 2 - dense;
  if (dense < 0 || batches < 0)
    throw RuntimeError("dense_to_{}: dense_dim argument must be in [0,{}] range, but {} is given (of a tensor of shape {})",
                       name_of(wanted), std::max<int64_t>(t.dim() - 2, 0), dense, t.sizes().str());
  if (!f.blocks) return ops::compressed(to_sparse(t, batches + 2), wanted, batches, block);
  // All elements of a stored block are stored, zeros included, and get gradients.
  const Tensor places = ops::compressed(to_sparse(t.detach(), batches + 2), wanted, batches, block);
  return ops::like_with_elements(places, ops::elements_at(t, ops::coordinates_of(places), t.dim()));
}

}  // namespace naru
