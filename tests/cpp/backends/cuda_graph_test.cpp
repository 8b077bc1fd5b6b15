// CUDA graphs with the fake libcuda, which records and rejects work as NVIDIA's does.
#include <cstring>

#include "backends/cuda/api.h"
#include "backends/cuda_fixture.h"
#include "naru/error.h"
#include "runtime/memory/allocator.h"

namespace naru::runtime {
namespace {

class CudaGraphs : public CudaFixture {
 protected:
  static constexpr int64_t kCount = 100;
  static constexpr size_t kBytes = kCount * sizeof(float);

  // x += x, `times` times.
  static std::vector<ir::Instruction> doublings(void* x, int times) {
    const ir::View v{x, DType::F32, {1}};
    ir::Map m;
    m.program = testing::program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
    m.shape = {kCount}, m.inputs = {v, v}, m.outputs = {v};
    return std::vector<ir::Instruction>(static_cast<size_t>(times), m);
  }
  void* ones(DeviceStream& s) {
    void* const x = memory(kBytes);
    const std::vector<float> one(kCount, 1);
    up(s, x, one.data(), kBytes);
    return x;
  }
  float last(DeviceStream& s, void* x) {
    std::vector<float> got(kCount);
    s.synchronize(down(s, got.data(), x, kBytes));
    return got.back();
  }
};

TEST_F(CudaGraphs, a_replay_is_one_launch_and_an_event_and_does_all_in_order) {
  const auto s = stream(), other = stream();
  void* const x = ones(*s);
  const auto work = doublings(x, 5);
  const auto recorded = s->record(work);
  ASSERT_NE(recorded, nullptr);
  EXPECT_EQ(last(*s, x), 1);  // capturing runs nothing
  listen();
  const uint64_t seq = s->replay(*recorded, {});
  unsetenv("NARU_FAKE_LOG");
  EXPECT_EQ(calls(log), (std::vector<std::string>{"cuGraphLaunch", "cuEventRecord"}));
  EXPECT_EQ(seq, s->submitted());
  EXPECT_EQ(last(*s, x), 32);
  other->wait(*s, s->submitted());
  other->replay(*recorded, {});  // works on any stream of the device
  other->submit(doublings(x, 1)[0], {});
  EXPECT_EQ(last(*other, x), 32 * 64);
}

TEST_F(CudaGraphs, a_full_cache_is_emptied_for_the_memory_of_a_graph_which_counts_as_long_as_the_graph_is_there) {
  const Device last_one(DeviceType::Cuda, 3);
  CachingAllocator cache(*backend, last_one);
  const auto s = stream(3);
  s->use_cache(cache);
  auto* const x = static_cast<float*>(memory(4096, 3));
  ir::MatMul q;
  q.m = q.n = q.k = 4;
  q.a = {x, 0, 4, 1}, q.b = {x + 64, 0, 4, 1}, q.c = {x + 128, 0, 4, 1};
  cache.release(cache.allocate(backend->free_memory(last_one) - 4 * kMiB));
  set("NARU_FAKE_WORKSPACE", std::to_string(6 * kMiB));
  const std::vector<ir::Instruction> work{q, q};
  auto recorded = s->record(work);
  ASSERT_NE(recorded, nullptr);
  EXPECT_EQ(cache.stats().reserved(), 6 * kMiB);
  recorded.reset();
  EXPECT_EQ(cache.stats().reserved(), 0u);
  backend->release(last_one, MemoryKind::Device, x, 4096);
}

TEST_F(CudaGraphs, kernels_are_loaded_and_memory_is_taken_before_a_capture_begins) {
  const auto s = stream();
  auto* const x = static_cast<float*>(ones(*s));
  set("NARU_FAKE_WORKSPACE", "100000");
  ir::MatMul q;
  q.m = q.n = q.k = 4;
  q.a = {x, 0, 4, 1}, q.b = {x + 16, 0, 4, 1}, q.c = {x + 32, 0, 4, 1};
  std::vector<ir::Instruction> work = doublings(x, 1);
  work.emplace_back(q);
  auto* const loaded = fake<size_t()>("fake_loaded_in_captures");
  const size_t before = loaded();
  const auto recorded = s->record(work);
  ASSERT_NE(recorded, nullptr);
  EXPECT_EQ(loaded(), before);
  EXPECT_EQ(last(*s, x), 1) << "nothing has been done yet";
  s->replay(*recorded, {});
  s->synchronize(s->submitted());
  std::vector<float> got(kCount);
  s->synchronize(down(*s, got.data(), x, kBytes));
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[32], 16) << "four products of two by two";
}

TEST_F(CudaGraphs, copies_over_the_bus_stay_outside_of_the_graph_in_their_place) {
  const auto s = stream();
  void* const x = ones(*s);
  auto* const host = static_cast<float*>(pinned(kBytes));
  auto work = doublings(x, 2);
  work.push_back(ir::CopyBytes{host, x, kBytes, Device(DeviceType::Cpu, 0), Device(DeviceType::Cuda, 0)});
  for (auto& i : doublings(x, 2)) work.push_back(std::move(i));
  const auto recorded = s->record(work);
  ASSERT_NE(recorded, nullptr);
  for (int i = 0; i < 2; ++i) s->replay(*recorded, {});
  s->synchronize(s->submitted());
  EXPECT_EQ(host[0], 64);
  EXPECT_EQ(last(*s, x), 256);
}

TEST_F(CudaGraphs, a_driver_that_can_not_record_is_given_one_instruction_after_another) {
  const auto s = stream();
  const auto work = doublings(ones(*s), 3);
  for (const char* error :
       {"cuStreamBeginCapture_v2=801", "cuLaunchKernel=900@2", "cuStreamEndCapture=901", "cuGraphInstantiateWithFlags=801"}) {
    set("NARU_FAKE_ERROR", error);
    EXPECT_EQ(s->record(work), nullptr) << error;
    unsetenv("NARU_FAKE_ERROR");
    EXPECT_NE(s->record(work), nullptr) << error;
  }
  s->synchronize(s->submitted());
}

TEST_F(CudaGraphs, a_device_that_is_lost_in_a_replay_says_so) {
  // A device that no other test uses, because it stays lost.
  set("NARU_FAKE_GPUS", std::string(std::getenv("NARU_FAKE_GPUS")) + ";0000:05:00.0 e 8.0 64 A100");
  set("CUDA_VISIBLE_DEVICES", "0,1,2,3,4");
  backend = backends::make_cuda();
  const auto s = stream(4);
  void* const x = memory(kBytes, 4);
  const auto work = doublings(x, 3);
  const auto recorded = s->record(work);
  ASSERT_NE(recorded, nullptr);
  set("NARU_FAKE_FAULT", "4");
  const uint64_t seq = s->replay(*recorded, {});
  EXPECT_THROW(s->synchronize(seq), DeviceLostError);
  EXPECT_THROW(s->synchronize(s->replay(*recorded, {})), DeviceLostError);
}

TEST_F(CudaGraphs, what_may_not_be_done_in_a_capture_is_refused_by_the_driver_in_place_of_the_real_one) {
  using namespace backends::gpu;
  const auto s = stream();
  void* const x = ones(*s);  // opens the driver
  const Driver cu = backends::cuda::open_driver();
  ASSERT_TRUE(cu.has_graphs());
  ContextHandle context = nullptr;
  StreamHandle capturing = nullptr, other = nullptr;
  EventHandle event = nullptr, outside = nullptr;
  GraphHandle graph = nullptr;
  ASSERT_EQ(cu.init(0), kSuccess);
  DeviceNumber device = 0;
  ASSERT_EQ(cu.device_by_pci(&device, "0000:01:00.0"), kSuccess);
  ASSERT_EQ(cu.context_retain(&context, device), kSuccess);
  ASSERT_EQ(cu.context_push(context), kSuccess);
  cu.stream_create(&capturing, kNonBlockingStream, 0);
  cu.stream_create(&other, kNonBlockingStream, 0);
  cu.event_create(&event, kOrderEvent);
  cu.event_create(&outside, kOrderEvent);
  cu.event_record(outside, other);
  const auto in_capture = [&](auto call) {
    EXPECT_EQ(cu.capture_begin(capturing, kRelaxedCapture), kSuccess);
    const Result code = call();
    EXPECT_EQ(cu.capture_end(capturing, &graph), code == kSuccess || code == 907 ? kSuccess : 901);
    if (graph) cu.graph_destroy(graph);
    return code;
  };
  float value = 0;
  const auto address = reinterpret_cast<Address>(x);
  EXPECT_EQ(in_capture([&] { return cu.stream_synchronize(capturing); }), 900);
  EXPECT_EQ(in_capture([&] { return cu.copy_up(address, &value, sizeof value, capturing); }), 900);
  EXPECT_EQ(in_capture([&] { return cu.stream_wait(capturing, outside, 0); }), 905);
  EXPECT_EQ(in_capture([&] { return cu.event_record(event, capturing), cu.event_query(event); }), 907);
  EXPECT_EQ(in_capture([&] { return cu.stream_synchronize(other); }), kSuccess);
  EXPECT_EQ(in_capture([&] { return cu.copy_within(address, address + 200, 100, capturing); }), kSuccess);
  cu.stream_destroy(capturing), cu.stream_destroy(other);
  cu.context_pop(&context);
  EXPECT_EQ(last(*s, x), 1);
}

}  // namespace
}  // namespace naru::runtime
