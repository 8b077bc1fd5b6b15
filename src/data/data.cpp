#include "naru/data.h"

#include <algorithm>
#include <cmath>
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

Sample default_collate(const std::vector<Sample>& samples) {
  Sample all;
  if (samples.empty()) return all;
  for (size_t c = 0; c < samples[0].size(); ++c) {
    std::vector<Tensor> column;
    for (const Sample& s : samples) {
      if (s.size() != samples[0].size())
        throw RuntimeError("each element in list of batch should be of equal size: one sample has {} tensors, another {}",
                           samples[0].size(), s.size());
      column.push_back(s[c]);
    }
    all.push_back(stack(column));
  }
  return all;
}

Dataset::~Dataset() = default;
IterableDataset::~IterableDataset() = default;

int64_t TensorDataset::size() const { return tensors_[0].size(0); }
int64_t Subset::size() const { return static_cast<int64_t>(numbers_.size()); }
int64_t ConcatDataset::size() const { return ends_.back(); }
int64_t StackDataset::size() const { return parts_[0]->size(); }
int64_t MapDataset::size() const { return whole_->size(); }

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> numbers)
    : whole_(std::move(whole)), numbers_(std::move(numbers)) {}
ChainDataset::ChainDataset(std::vector<std::shared_ptr<const IterableDataset>> parts) : parts_(std::move(parts)) {}
MapDataset::MapDataset(std::shared_ptr<const Dataset> whole, Transform transform)
    : whole_(std::move(whole)), transform_(std::move(transform)) {}
Sample MapDataset::get(int64_t i) const { return transform_(whole_->get(i)); }

Sample Dataset::batch(std::span<const int64_t> numbers) const {
  std::vector<Sample> samples;
  for (const int64_t i : numbers) samples.push_back(get(i));
  return default_collate(samples);
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

std::vector<std::shared_ptr<Subset>> split_by_shares(std::shared_ptr<const Dataset> whole, const std::vector<double>& shares,
                                                     Generator* generator) {
  double total = 0;
  for (const double s : shares) total += s;
  if (std::abs(total - 1) > 1e-6)
    throw ValueError("Sum of input lengths does not equal the length of the input dataset! (random_split: shares that add up to {})",
                     total);
  std::vector<int64_t> lengths;
  int64_t left = whole->size();
  for (const double s : shares) {
    if (s < 0 || s > 1) throw ValueError("Fraction at index {} is not between 0 and 1", lengths.size());
    lengths.push_back(static_cast<int64_t>(std::floor(static_cast<double>(whole->size()) * s)));
    left -= lengths.back();
  }
  for (size_t i = 0; left > 0; ++i, --left) ++lengths[i % lengths.size()];
  return random_split(std::move(whole), lengths, generator);
}

// --- data sets built from other data sets

ConcatDataset::ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) throw ValueError("datasets should not be an empty iterable");
  int64_t end = 0;
  for (const auto& p : parts_) ends_.push_back(end += p->size());
}

Sample ConcatDataset::get(int64_t i) const {
  check_number(i, size());
  const auto part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
  return parts_[part]->get(part ? i - ends_[part - 1] : i);
}

StackDataset::StackDataset(std::vector<std::shared_ptr<const Dataset>> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) throw ValueError("At least one dataset should be passed");
  for (const auto& p : parts_)
    if (p->size() != parts_[0]->size())
      throw ValueError("Size mismatch between datasets ({} and {} samples)", parts_[0]->size(), p->size());
}

Sample StackDataset::get(int64_t i) const {
  Sample all;
  for (const auto& p : parts_)
    for (Tensor& t : p->get(i)) all.push_back(std::move(t));
  return all;
}

std::function<Sample()> ChainDataset::begin() const {
  return [parts = parts_, at = size_t{0}, next = std::function<Sample()>()]() mutable -> Sample {
    for (; at < parts.size(); ++at, next = nullptr) {
      if (!next) next = parts[at]->begin();
      if (Sample s = next(); !s.empty()) return s;
    }
    return {};
  };
}

MapDataset::Transform normalize(std::vector<double> mean, std::vector<double> std, size_t which) {
  const auto shaped = [](const std::vector<double>& v, const Tensor& like) {
    Dims shape(static_cast<size_t>(like.dim()), 1);
    if (v.size() > 1) shape[0] = static_cast<int64_t>(v.size());
    return tensor(v, Options(like.dtype(), like.device())).view(shape);
  };
  return [=](Sample s) {
    Tensor& t = s.at(which);
    t = (t - shaped(mean, t)) / shaped(std, t);
    return s;
  };
}

}  // namespace naru::data
