// Streams, events and synchronization on virtual devices, and random programs over all of them.
#include "naru/device/stream.h"

#include <gtest/gtest.h>

#include <random>

#include "core/tensor_impl.h"
#include "naru/device/devices.h"
#include "naru/device/sync.h"
#include "naru/device/virtual.h"
#include "naru/error.h"
#include "naru/ops.h"
#include "runtime/device/registry.h"
#include "runtime/memory/memory.h"

namespace naru {
namespace {

// Enables virtual devices for the duration of a test.
struct Streams : ::testing::Test {
  Streams() { set_virtual_devices("cuda:2,mps:1"); }
  ~Streams() override { set_virtual_devices(""); }
};

TEST_F(Streams, WorkGoesToTheCurrentStreamAndResultsAreWaitedFor) {
  const Stream a("cuda:0"), b("cuda:0");
  EXPECT_NE(a, b);
  Tensor x;
  {
    const StreamGuard guard(a);
    EXPECT_EQ(Stream::current("cuda:0"), a);
    x = cumsum(ones({100000}, Options(DType::F32, "cuda:0")), 0);
  }
  EXPECT_EQ(Stream::current("cuda:0"), Stream::default_stream("cuda:0"));
  const StreamGuard guard(b);
  EXPECT_EQ((x * 2).max().item<double>(), 200000);
}

TEST_F(Streams, AStreamOfAnotherDeviceMakesItCurrent) {
  const Stream s("cuda:1");
  const StreamGuard guard(s);
  EXPECT_EQ(ones({2}, Options(DType::F32, "cuda")).device(), Device("cuda:1"));
}

TEST_F(Streams, EventsAreReachedInOrder) {
  const Stream s("cuda:0");
  Event first(true), second(true);
  EXPECT_TRUE(first.query());
  first.record(s);
  {
    const StreamGuard guard(s);
    cumsum(ones({100000}, Options(DType::F32, "cuda:0")), 0);
  }
  second.record(s);
  Stream::default_stream("cuda:0").wait(second);
  second.synchronize();
  EXPECT_TRUE(first.query());
  EXPECT_GT(first.elapsed_time(second), 0);
  EXPECT_THROW(first.elapsed_time(Event()), ValueError);
  EXPECT_THROW(Event(true).elapsed_time(second), ValueError);
}

TEST_F(Streams, ThereAreThirtyTwoBesideTheDefaultOneHandedOutInTurn) {
  const Stream first("mps:0");
  for (int i = 0; i < 31; ++i) EXPECT_NE(Stream("mps:0"), first);
  EXPECT_EQ(Stream("mps:0"), first);
}

TEST_F(Streams, MemoryIsHandedOnWhileTheLastOwnerIsStillComputedAndTheNextOneWaits) {
  const Device d("cuda:0");
  const Stream a(d), b(d);
  runtime::synchronize(d);
  runtime::empty_cache(d);
  runtime::set_memory_limit(
      d, size_t{18} << 20);  // one slab, and one of small blocks, so that rounds soon reuse what the other stream still uses
  std::vector<Tensor> sums;
  for (int i = 0; i < 60; ++i) {
    const StreamGuard guard(i % 2 ? a : b);
    const Tensor x = full({280000}, i, Options(DType::F32, d));
    sums.push_back(max(cumsum(x, 0)) / 280000);
  }
  for (int i = 0; i < 60; ++i) EXPECT_EQ(sums[static_cast<size_t>(i)].item<double>(), i);
  runtime::set_memory_limit(d, 0);
}

TEST_F(Streams, SynchronizationsAreCountedAndForbidden) {
  const Tensor x = ones({10}, Options(DType::F32, "cuda:0"));
  const CountSyncs count;
  const Tensor y = x * 2;
  EXPECT_TRUE(count.list().empty());
  y.cpu();
  synchronize("cuda:0");
  ASSERT_EQ(count.list().size(), 2u);
  EXPECT_EQ(count.list()[0].what, "copy");
  EXPECT_EQ(count.list()[1].device, Device("cuda:0"));
  {
    const ForbidSync forbid;
    EXPECT_THROW(y.cpu(), SynchronizationError);
    EXPECT_NO_THROW(y + x);
  }
  EXPECT_EQ(y.sum().item<double>(), 20);
}

TEST_F(Streams, AnErrorReachesWhoeverReadsWhatWasMadeOfIt) {
  const Options there(DType::F32, "cuda:0");
  const Tensor bad = full({1}, 7, Options(DType::I64, "cuda:0"));
  Tensor picked, moved;
  {
    const StreamGuard guard{Stream("cuda:0")};
    picked = index_select(ones({3}, there), 0, bad);
  }
  moved = picked.to(Device("cuda:1"));
  EXPECT_THROW((moved + 1).cpu(), IndexError);
  for (int i = 0; i < 100; ++i) EXPECT_EQ((ones({3}, there) + i).sum().item<double>(), 3 + 3 * i);
}

// --- random programs ------------------------------------------------------------------------------------------------

// Runs each program twice: on tensors of several devices and streams, and immediately on plain arrays.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {}

  void run(int statements) {
    for (int i = 0; i < statements; ++i) statement();
    for (size_t i = 0; i < slots_.size(); ++i) check(i);
  }

 private:
  struct Array {
    std::shared_ptr<std::vector<double>> memory;
    size_t offset, size;
    double& operator[](size_t i) const { return (*memory)[offset + i]; }
  };
  struct Slot {
    Tensor tensor;
    Array array;
  };

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  Device place() {
    static const Device places[] = {"cuda:0", "cuda:0", "cuda:1", "mps:0", "cpu"};
    return places[below(5)];
  }
  size_t pick() { return below(slots_.size()); }
  static Array fresh(size_t n, double value = 0) { return {std::make_shared<std::vector<double>>(n, value), 0, n}; }
  void put(Tensor t, Array a) {
    if (slots_.size() == 8) slots_.erase(slots_.begin() + static_cast<long>(pick()));
    slots_.push_back({std::move(t), std::move(a)});
  }
  // Another tensor of the same device and size, or null.
  Slot* partner(const Slot& s) {
    std::vector<Slot*> found;
    for (Slot& o : slots_)
      if (o.tensor.device() == s.tensor.device() && o.array.size == s.array.size) found.push_back(&o);
    return found.empty() ? nullptr : found[below(found.size())];
  }

  void statement() {
    const Device d = place();
    const bool other_stream = !d.is_cpu() && below(3) > 0;
    const StreamGuard guard(other_stream ? Stream(d) : Stream::default_stream(d.is_cpu() ? Device("cuda:0") : d));
    if (slots_.empty() || below(8) == 0) return create(d);
    Slot& s = slots_[pick()];
    switch (below(9)) {
      case 0:
        return combine(s);
      case 1:
        return add_in_place(s);
      case 2:
        return take_view(s);
      case 3:
        return move(s, d);
      case 4:
        return copy_into(s);
      case 5:
        return through_pinned(s);
      case 6:
        slots_.erase(slots_.begin() + (&s - slots_.data()));
        return;
      case 7:
        return reduce_rows(s);
      default:
        return check(static_cast<size_t>(&s - slots_.data()));
    }
  }

  void create(Device d) {
    static const size_t sizes[] = {1, 16, 16, 5000, 5000, 40000};
    const size_t n = sizes[below(6)];
    const double v = static_cast<double>(below(7));
    put(full({static_cast<int64_t>(n)}, v, Options(DType::F64, d)), fresh(n, v));
  }
  void combine(Slot& s) {
    Slot* o = partner(s);
    Array a = fresh(s.array.size);
    for (size_t i = 0; i < a.size; ++i) a[i] = s.array[i] - 2 * (*o).array[i];
    put(s.tensor - o->tensor * 2, a);
  }
  void add_in_place(Slot& s) {
    Slot* o = partner(s);
    std::vector<double> sum(s.array.size);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = s.array[i] + o->array[i];
    for (size_t i = 0; i < sum.size(); ++i) s.array[i] = sum[i];
    Tensor(s.tensor).add_(o->tensor);
    s.tensor.mul_(0.5);
    for (size_t i = 0; i < sum.size(); ++i) s.array[i] *= 0.5;
  }
  void take_view(Slot& s) {
    if (s.array.size < 2) return;
    const size_t from = below(s.array.size / 2), n = s.array.size / 2;
    put(s.tensor.slice(0, static_cast<int64_t>(from), static_cast<int64_t>(from + n)), Array{s.array.memory, s.array.offset + from, n});
  }
  void move(Slot& s, Device d) {
    Array a = fresh(s.array.size);
    for (size_t i = 0; i < a.size; ++i) a[i] = s.array[i];
    put(s.tensor.to(d, {}, below(2) == 0, true), a);
  }
  void copy_into(Slot& s) {
    for (Slot& o : slots_) {
      if (&o == &s || o.array.size != s.array.size) continue;
      std::vector<double> copy(s.array.size);
      for (size_t i = 0; i < copy.size(); ++i) copy[i] = s.array[i];
      for (size_t i = 0; i < copy.size(); ++i) o.array[i] = copy[i];
      o.tensor.copy_(s.tensor, below(2) == 0);
      return;
    }
  }
  void through_pinned(Slot& s) {
    Tensor host = full({static_cast<int64_t>(s.array.size)}, -1, Options(DType::F64, Device("cpu"))).pin_memory();
    host.copy_(s.tensor, true);
    if (below(2))
      host.add_(1);
    else
      host = host + 1;
    Array a = fresh(s.array.size);
    for (size_t i = 0; i < a.size; ++i) a[i] = s.array[i] + 1;
    put(host, a);
  }
  void reduce_rows(Slot& s) {
    double last = 0;
    for (size_t i = 0; i < s.array.size; ++i) last = std::max(last, s.array[i]);
    put(maximum(max(s.tensor).reshape({1}), 0), fresh(1, last));
  }
  void check(size_t i) {
    const Slot& s = slots_[i];
    const std::vector<double> got = s.tensor.to_doubles();
    ASSERT_EQ(got.size(), s.array.size);
    for (size_t k = 0; k < got.size(); ++k)
      ASSERT_EQ(got[k], s.array[k]) << "element " << k << " of " << got.size() << " on " << s.tensor.device().str();
  }

  std::mt19937 random_;
  std::vector<Slot> slots_;
};

void run_programs(unsigned first, unsigned count) {
  for (unsigned seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Program(seed).run(24);
  }
}

TEST_F(Streams, RandomProgramsNeverSeeAValueThatTheSequentialOnesWouldNot) { run_programs(0, 9000); }

TEST_F(Streams, RandomProgramsDoNotEitherWhenCopiesAndLaunchesAreLate) {
  VirtualOptions late;
  late.count = 2;
  late.copy_delay = 100e-6;
  late.launch_delay = 30e-6;
  const VirtualDevices cuda(DeviceType::Cuda, late);
  run_programs(9000, 600);
}

TEST_F(Streams, RandomProgramsDoNotEitherWithoutPeerAccess) {
  VirtualOptions apart;
  apart.count = 2;
  apart.copy_delay = 50e-6;
  apart.peer = PeerAccess::Off;
  const VirtualDevices cuda(DeviceType::Cuda, apart);
  run_programs(9600, 400);
}

TEST(VirtualOptions, AreReadAndWritten) {
  const VirtualOptions o =
      parse_virtual_options("memory=64MiB;copy_delay=3ms;launch_delay=50us;bandwidth=10GB/s;peer=off;fail_copy=2;without=fp64+sort", 3);
  EXPECT_EQ(o.count, 3);
  EXPECT_EQ(o.memory, size_t{64} << 20);
  EXPECT_DOUBLE_EQ(o.copy_delay, 3e-3);
  EXPECT_DOUBLE_EQ(o.launch_delay, 50e-6);
  EXPECT_DOUBLE_EQ(o.bandwidth, 10.0 * (1 << 30));
  EXPECT_EQ(o.peer, PeerAccess::Off);
  EXPECT_EQ(o.fail_copy, 2u);
  EXPECT_EQ(o.without, (std::vector<std::string>{"fp64", "sort"}));
  EXPECT_EQ(parse_virtual_options(to_text(o), 3), o);
  for (const char* bad : {"memory=", "memory=1Q", "colour=red", "peer=x", "copy_delay=1min", "fail_copy=-1", "memory"})
    EXPECT_THROW(parse_virtual_options(bad), RuntimeError) << bad;
}

TEST(VirtualDevices, ReplaceThoseOfAKindAndPutThemBack) {
  set_virtual_devices("cuda:1,mps:1");
  {
    VirtualOptions o;
    o.count = 3;
    o.lose_after = 1;
    const VirtualDevices three(DeviceType::Cuda, o);
    EXPECT_EQ(device_count(DeviceType::Cuda), 3);
    EXPECT_EQ(device_count(DeviceType::Mps), 1);
    EXPECT_THROW(cumsum(cumsum(ones({5}, Options(DType::F32, "cuda:2")), 0), 0).cpu(), DeviceLostError);
    EXPECT_THROW(synchronize("cuda:2"), DeviceLostError);
  }
  EXPECT_EQ(device_count(DeviceType::Cuda), 1);
  EXPECT_EQ(ones({5}, Options(DType::F32, "cuda:0")).sum().item<double>(), 5);
  set_virtual_devices("");
}

}  // namespace
}  // namespace naru
