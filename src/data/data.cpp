#include "naru/data.h"

#include <numeric>

#include "naru/error.h"
#include "naru/ops.h"

namespace naru::data {
namespace {

const Options kHost{Device(DeviceType::Cpu)};

void check_number(int64_t i, int64_t size) {
  if (i < 0 || i >= size) throw IndexError("sample {} is out of range for a data set of {} samples", i, size);
}

}  // namespace

Sample Dataset::batch(std::span<const int64_t> numbers) const {
  std::vector<std::vector<Tensor>> columns;
  for (size_t k = 0; k < numbers.size(); ++k) {
    const Sample sample = get(numbers[k]);
    if (k == 0) columns.resize(sample.size());
    if (sample.size() != columns.size())
      throw RuntimeError("each element in list of batch should be of equal size: sample {} has {} tensors, sample {} has {}", numbers[0],
                         columns.size(), numbers[k], sample.size());
    for (size_t c = 0; c < sample.size(); ++c) columns[c].push_back(sample[c]);
  }
  Sample all;
  for (const auto& column : columns) all.push_back(stack(column));
  return all;
}

Sample Dataset::all() const {
  std::vector<int64_t> numbers(static_cast<size_t>(size()));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return batch(numbers);
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw ValueError("TensorDataset: wanted at least one tensor, got none");
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].defined() || tensors_[i].dim() == 0) throw ValueError("TensorDataset: tensor {} has no rows", i);
    if (tensors_[i].size(0) != tensors_[0].size(0))
      throw ValueError("Size mismatch between tensors: TensorDataset got {} rows in tensor 0 and {} in tensor {}", tensors_[0].size(0),
                       tensors_[i].size(0), i);
  }
}

Sample TensorDataset::get(int64_t i) const {
  check_number(i, size());
  Sample sample;
  for (const Tensor& t : tensors_) sample.push_back(t[i]);
  return sample;
}

Sample TensorDataset::batch(std::span<const int64_t> numbers) const {
  const Tensor rows = tensor(std::vector<int64_t>(numbers.begin(), numbers.end()), kHost);
  Sample all;
  for (const Tensor& t : tensors_) all.push_back(index_select(t, 0, rows.to(t.device())));
  return all;
}

Sample Subset::get(int64_t i) const {
  check_number(i, size());
  return whole_->get(numbers_[static_cast<size_t>(i)]);
}

std::vector<int64_t> Subset::at(std::span<const int64_t> numbers) const {
  std::vector<int64_t> list;
  for (int64_t i : numbers) {
    check_number(i, size());
    list.push_back(numbers_[static_cast<size_t>(i)]);
  }
  return list;
}

Sample Subset::batch(std::span<const int64_t> numbers) const { return whole_->batch(at(numbers)); }

std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> whole, const std::vector<int64_t>& lengths,
                                                  Generator* generator) {
  int64_t total = 0;
  for (int64_t n : lengths) {
    if (n < 0) throw ValueError("random_split: wanted lengths of at least 0, got {}", n);
    total += n;
  }
  if (total != whole->size())
    throw ValueError("Sum of input lengths does not equal the length of the input dataset! (random_split: {} and {})", total,
                     whole->size());
  const std::vector<int64_t> order = randperm(total, Options(DType::I64, Device(DeviceType::Cpu)), generator).to_ints();
  std::vector<std::shared_ptr<Subset>> parts;
  auto from = order.begin();
  for (int64_t n : lengths) {
    parts.push_back(std::make_shared<Subset>(whole, std::vector<int64_t>(from, from + n)));
    from += n;
  }
  return parts;
}

}  // namespace naru::data
