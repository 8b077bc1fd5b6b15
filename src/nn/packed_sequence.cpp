// PackedSequence: batches of sequences of different lengths, without padding.
#include <algorithm>
#include <numeric>

#include "naru/nn/recurrent.h"
#include "naru/nn/utils.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"

namespace naru::nn::utils::rnn {
namespace {

Tensor numbers(const std::vector<int64_t>& values) {
  return values.empty() ? empty({0}, Options(DType::I64)) : tensor(values, Options(DType::I64));
}

std::vector<int64_t> ints_of(const Tensor& t, const char* what) {
  if (!t.defined() || !t.device().is_cpu() || t.dtype() != DType::I64 || t.dim() != 1)
    throw RuntimeError("'{}' argument should be a 1D CPU int64 tensor, but got {}", what,
                       t.defined() ? std::to_string(t.dim()) + "D " + t.device().str() + " " + std::string(name_of(t.dtype())) + " tensor"
                                   : std::string("an undefined one"));
  return t.to_ints();
}

// The row index t N + n in a (T, N) tensor for each row of a packed tensor.
Tensor places(const std::vector<int64_t>& batch_sizes, int64_t batch, const Device& device) {
  std::vector<int64_t> all;
  for (size_t t = 0; t < batch_sizes.size(); ++t)
    for (int64_t n = 0; n < batch_sizes[t]; ++n) all.push_back(static_cast<int64_t>(t) * batch + n);
  return numbers(all).to(device);
}

}  // namespace

PackedSequence PackedSequence::to(Device device) const {
  const auto moved = [&](const Tensor& t) { return t.defined() ? t.to(device) : t; };
  return {data.to(device), batch_sizes, moved(sorted_indices), moved(unsorted_indices)};
}

std::pair<Tensor, Tensor> pack_rows(const Tensor& given, const Tensor& lengths, bool batch_first) {
  if (given.dim() < 2)
    throw RuntimeError("pack_padded_sequence: wanted an input of at least 2 dimensions, got shape {}", given.sizes().str());
  const Tensor input = batch_first ? given.transpose(0, 1) : given;
  const std::vector<int64_t> all = ints_of(lengths, "lengths");
  const int64_t steps = input.size(0), batch = input.size(1);
  if (static_cast<int64_t>(all.size()) != batch)
    throw RuntimeError("Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={})", all.size(), batch);
  if (input.numel() == 0 || all.empty()) throw RuntimeError("Cannot pack empty tensors.");
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] <= 0) throw RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
    if (i > 0 && all[i] > all[i - 1])
      throw RuntimeError(
          "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
          "pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability.");
  }
  if (all[0] > steps)
    throw RuntimeError("Expected `lengths` to be at most the length of the input, but got {} for an input of {} steps", all[0], steps);
  std::vector<int64_t> sizes(static_cast<size_t>(all[0]), 0);
  for (const int64_t length : all)
    for (int64_t t = 0; t < length; ++t) ++sizes[static_cast<size_t>(t)];
  Dims flat = input.sizes();
  flat.erase(0);
  flat[0] = steps * batch;
  return {index_select(input.reshape(flat), 0, places(sizes, batch, input.device())), numbers(sizes)};
}

std::pair<Tensor, Tensor> pad_rows(const Tensor& data, const Tensor& batch_sizes, bool batch_first, double padding_value,
                                   std::optional<int64_t> total_length) {
  const std::vector<int64_t> sizes = ints_of(batch_sizes, "batch_sizes");
  const auto steps = static_cast<int64_t>(sizes.size());
  if (sizes.empty() || data.dim() < 1 || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != data.size(0) ||
      !std::is_sorted(sizes.rbegin(), sizes.rend()) || sizes.back() <= 0)
    throw RuntimeError("pad_packed_sequence: the batch sizes {} do not fit data of shape {}", Dims(std::span<const int64_t>(sizes)).str(),
                       data.sizes().str());
  const int64_t length = total_length.value_or(steps);
  if (length < steps)
    throw ValueError(
        "Expected total_length to be at least the length of the longest sequence in input, but got total_length={} and max sequence length "
        "being {}",
        length, steps);
  const int64_t batch = sizes[0];
  Dims shape = data.sizes();
  shape[0] = batch;
  shape.insert(0, length);
  const Tensor rows = full(shape, padding_value, Options(data.dtype(), data.device())).flatten(0, 1);
  const Tensor padded = index_copy(rows, 0, places(sizes, batch, data.device()), data).view(shape);
  std::vector<int64_t> lengths(static_cast<size_t>(batch), 0);
  for (const int64_t n : sizes)
    for (int64_t i = 0; i < n; ++i) ++lengths[static_cast<size_t>(i)];
  return {batch_first ? padded.transpose(0, 1) : padded, numbers(lengths)};
}

Tensor invert_permutation(const Tensor& permutation) {
  return index_copy(empty_like(permutation), 0, permutation,
                    arange(0, permutation.numel(), 1, Options(permutation.dtype(), permutation.device())));
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first, bool enforce_sorted) {
  if (enforce_sorted) {
    auto [data, sizes] = pack_rows(input, lengths, batch_first);
    return {std::move(data), std::move(sizes), {}, {}};
  }
  const auto [falling, order] = sort(lengths, -1, true);
  const Tensor sorted_indices = order.to(input.device());
  auto [data, sizes] = pack_rows(index_select(input, batch_first ? 0 : 1, sorted_indices), falling, batch_first);
  return {std::move(data), std::move(sizes), sorted_indices, invert_permutation(sorted_indices)};
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (const Tensor& s : sequences) lengths.push_back(s.size(0));
  return pack_padded_sequence(pad_sequence(sequences), numbers(lengths), false, enforce_sorted);
}

std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& s, bool batch_first, double padding_value,
                                              std::optional<int64_t> total_length) {
  auto [padded, lengths] = pad_rows(s.data, s.batch_sizes, batch_first, padding_value, total_length);
  if (!s.unsorted_indices.defined()) return {padded, lengths};
  return {index_select(padded, batch_first ? 0 : 1, s.unsorted_indices), index_select(lengths, 0, s.unsorted_indices.cpu())};
}

std::vector<Tensor> unpack_sequence(const PackedSequence& s) {
  const auto [padded, lengths] = pad_packed_sequence(s, true);
  return unpad_sequence(padded, lengths, true);
}

}  // namespace naru::nn::utils::rnn
