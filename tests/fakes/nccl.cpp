/* NCCL for tests, over the driver beside this (cuda.cpp): ranks are processes of one host, which exchange by a file in memory. As unkind as the library
   may be:
     - calls of a communicator that does not block say ncclInProgress (7) and reach the stream later, while it is asked for its state; meanwhile no other
       call is allowed; a communicator's first operation waits for the other ranks to have called it, too;
     - operations whose ranks do not call the same never end, nor do those of ranks that have ended;
     - a send ends when its message has been received;
     - sums are those of the ranks from last to first, another order than naru's own;
     - memory is looked at when the stream gets there: what has been freed ends the context.
   A process that uses it wrongly is ended by abort(), with a line that says how: calls of a communicator that was aborted or destroyed, on the stream of
   another context, out of a group's order; operations that do not run in the order of their calls; a communicator destroyed while they are under way.
   Besides what cuda.cpp reads:
     NARU_FAKE_NCCL_ERROR    "R:N": rank R's operation N never ends, and its communicator reports ncclRemoteError (6)
     NARU_FAKE_NCCL_VERSION  what ncclGetVersion says */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_library.h"
#include "numbers.h"

namespace {

enum { kUnhandledCuda = 1, kSystem = 2, kInternal = 3, kInvalidArgument = 4, kInvalidUsage = 5, kRemote = 6, kInProgress = 7 };
enum { kI8, kU8, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBF16, kTypes };
enum { kSum, kProd, kMax, kMin, kAvg, kOps };
enum What { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv };
constexpr size_t kSizes[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
constexpr int kMostRanks = 8;
constexpr size_t kMost = size_t{32} << 20;  // bytes of an operand

thread_local std::string words;
int refuse(int code, const char* why) {
  words = why;
  return code;
}
[[noreturn]] void wrong(const char* how) {
  fprintf(stderr, "the fake NCCL was used wrongly: %s\n", how);
  abort();
}

// --- what ranks share -------------------------------------------------------------------------------------------------

struct Call {
  What what;
  int type, op, peer;
  size_t count;
  bool operator==(const Call& o) const { return what == o.what && type == o.type && op == o.op && peer == o.peer && count == o.count; }
};
struct Place {
  std::atomic<bool> joined, connects;
  std::atomic<uint64_t> posted, finished;
  Call calls[2];
};
struct Line {  // of messages from one rank to another
  std::atomic<uint64_t> sent, received;
  size_t bytes;
};
struct Shared {
  Place places[kMostRanks];
  Line lines[kMostRanks][kMostRanks];
};
constexpr size_t kHead = size_t{1} << 20;
constexpr size_t kAll = kHead + kMost * (2 * kMostRanks + kMostRanks * kMostRanks);
static_assert(sizeof(Shared) <= kHead);

struct Comm {
  Shared* shared;
  int rank, size;
  void* context;
  bool blocking, connected = false, joined = false, finalized = false;
  std::atomic<bool> aborted{false};
  int left = 0;                              // how often it still says that its call is in progress
  std::atomic<int> error{0};                 // what it reports
  std::vector<std::function<void()>> later;  // what reaches the streams then
  uint64_t called = 0, ran = 0, number = 0;  // operations: called, run; collectives run
  uint64_t sent[kMostRanks] = {}, received[kMostRanks] = {};
  std::atomic<int> under_way{0};

  char* data(int r, uint64_t n) { return reinterpret_cast<char*>(shared) + kHead + kMost * (2 * static_cast<size_t>(r) + n % 2); }
  char* line(int from, int to) {
    return reinterpret_cast<char*>(shared) + kHead + kMost * static_cast<size_t>(2 * kMostRanks + from * kMostRanks + to);
  }
};
using CommRef = std::shared_ptr<Comm>;

std::recursive_mutex mutex;
std::map<Comm*, CommRef>& comms = *new std::map<Comm*, CommRef>;

// The communicator of a handle; a handle that is none ends the process.
const CommRef& alive(Comm* c) {
  const auto at = comms.find(c);
  if (at == comms.end()) wrong("a call of a communicator that was aborted or destroyed");
  return at->second;
}

// --- numbers ----------------------------------------------------------------------------------------------------------

template <class T>
T reduced(int op, T a, T b) {
  switch (op) {
    case kProd:
      return static_cast<T>(a * b);
    case kMax:
      return std::max(a, b);
    case kMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}
template <class T, class Load, class Store>
void reduce_as(const std::vector<const char*>& from, size_t begin, size_t count, char* to, int op, Load load, Store store) {
  const int n = static_cast<int>(from.size());
  for (size_t i = 0; i < count; ++i) {
    T x = load(from[static_cast<size_t>(n - 1)], begin + i);
    for (int r = n - 2; r >= 0; --r) x = reduced<T>(op, x, load(from[static_cast<size_t>(r)], begin + i));
    store(to, i, op == kAvg ? static_cast<T>(x / static_cast<T>(n)) : x);
  }
}
template <class T>
void reduce_plain(const std::vector<const char*>& from, size_t begin, size_t count, char* to, int op) {
  reduce_as<T>(
      from, begin, count, to, op, [](const char* p, size_t i) { return reinterpret_cast<const T*>(p)[i]; },
      [](char* p, size_t i, T x) { reinterpret_cast<T*>(p)[i] = x; });
}
void reduce(const std::vector<const char*>& from, size_t begin, size_t count, char* to, int type, int op) {
  const auto u16 = [](const char* p, size_t i) { return reinterpret_cast<const uint16_t*>(p)[i]; };
  switch (type) {
    case kI8:
      return reduce_plain<int8_t>(from, begin, count, to, op);
    case kU8:
      return reduce_plain<uint8_t>(from, begin, count, to, op);
    case kI32:
      return reduce_plain<int32_t>(from, begin, count, to, op);
    case kU32:
      return reduce_plain<uint32_t>(from, begin, count, to, op);
    case kI64:
      return reduce_plain<int64_t>(from, begin, count, to, op);
    case kU64:
      return reduce_plain<uint64_t>(from, begin, count, to, op);
    case kF32:
      return reduce_plain<float>(from, begin, count, to, op);
    case kF64:
      return reduce_plain<double>(from, begin, count, to, op);
    case kF16:
      return reduce_as<float>(
          from, begin, count, to, op, [=](const char* p, size_t i) { return static_cast<float>(from_half(u16(p, i))); },
          [](char* p, size_t i, float x) { reinterpret_cast<uint16_t*>(p)[i] = to_half(static_cast<double>(x)); });
    default:
      return reduce_as<float>(
          from, begin, count, to, op, [=](const char* p, size_t i) { return with_bits(uint32_t{u16(p, i)} << 16); },
          [](char* p, size_t i, float x) { reinterpret_cast<uint16_t*>(p)[i] = static_cast<uint16_t>(bits_of(shortened(x, 16)) >> 16); });
  }
}

// --- operations -------------------------------------------------------------------------------------------------------

bool ends_with_error(const Comm& c, uint64_t n) {
  const char* const text = getenv("NARU_FAKE_NCCL_ERROR");
  int rank = -1;
  unsigned long long number = 0;
  return text && sscanf(text, "%d:%llu", &rank, &number) == 2 && rank == c.rank && number == n;
}

struct Operation {
  Call call;
  const void* from;
  void* to;
  uint64_t number = 0;
  int stage = 0;

  // True when it is done.
  bool go(Comm& c) {
    const size_t bytes = call.count * kSizes[call.type];
    if (call.what == kSend || call.what == kRecv) return message(c, bytes);
    Place& mine = c.shared->places[c.rank];
    if (stage == 0) {
      if (!number) number = ++c.number;
      if (ends_with_error(c, number)) c.error = kRemote;
      if (c.error) return false;
      // What is in this half of the memory must have been read by all.
      for (int r = 0; r < c.size; ++r)
        if (c.shared->places[r].finished + 2 < number) return false;
      if (const size_t all = call.what == kReduceScatter ? bytes * static_cast<size_t>(c.size) : bytes;
          call.what != kBroadcast || call.peer == c.rank) {
        const char* const data = host(c.context, from, all);
        if (!data) return true;
        memcpy(c.data(c.rank, number), data, all);
      }
      mine.calls[number % 2] = call;
      mine.posted = number;
      stage = 1;
    }
    for (int r = 0; r < c.size; ++r) {
      if (c.shared->places[r].posted < number) return false;
      if (!(c.shared->places[r].calls[number % 2] == call)) return false;  // for ever
    }
    finish(c, bytes);
    mine.finished = number;
    return true;
  }

 private:
  void finish(Comm& c, size_t bytes) {
    if (call.what == kReduce && call.peer != c.rank) return;
    const size_t size = static_cast<size_t>(c.size), rank = static_cast<size_t>(c.rank);
    char* const result = host(c.context, to, call.what == kAllGather ? bytes * size : bytes);
    if (!result) return;
    if (call.what == kBroadcast) {
      memcpy(result, c.data(call.peer, number), bytes);
    } else if (call.what == kAllGather) {
      for (size_t r = 0; r < size; ++r) memcpy(result + r * bytes, c.data(static_cast<int>(r), number), bytes);
    } else {
      std::vector<const char*> all;
      for (int r = 0; r < c.size; ++r) all.push_back(c.data(r, number));
      reduce(all, call.what == kReduceScatter ? rank * call.count : 0, call.count, result, call.type, call.op);
    }
  }
  bool message(Comm& c, size_t bytes) {
    const bool sends = call.what == kSend;
    const int a = sends ? c.rank : call.peer, b = sends ? call.peer : c.rank;
    Line& line = c.shared->lines[a][b];
    if (!number) number = sends ? ++c.sent[b] : ++c.received[a];
    if (!sends) {
      if (line.sent < number || line.bytes != bytes) return false;
      char* const data = host(c.context, to, bytes);
      if (data) memcpy(data, c.line(a, b), bytes);
      line.received = number;
      return true;
    }
    if (stage == 0) {
      if (line.received + 1 < number) return false;
      const char* const data = host(c.context, from, bytes);
      if (!data) return true;
      memcpy(c.line(a, b), data, bytes);
      line.bytes = bytes;
      line.sent = number;
      stage = 1;
    }
    return line.received >= number;
  }
};

// What a group has put on a stream. A copy starts from the first operation.
struct Piece {
  CommRef comm;
  std::vector<Operation> operations;
  uint64_t place;  // among the communicator's calls; 0 in graphs
  bool begun = false;

  bool operator()() {
    Comm& c = *comm;
    if (!begun && place && place != ++c.ran) wrong("operations of one communicator run in another order than they were called in");
    begun = true;
    // Collectives in their order, messages all at once.
    bool done = true, waits = false;
    for (Operation& o : operations) {
      if (o.stage == 9) continue;
      const bool collective = o.call.what < kSend;
      if (c.aborted || (!(collective && waits) && o.go(c))) {
        o.stage = 9;
      } else {
        done = false, waits |= collective;
      }
    }
    if (done && place) --c.under_way;
    return done;
  }
};

struct Called {
  Comm* comm;
  void* stream;
  Operation operation;
};
thread_local int depth = 0;
thread_local int spoiled = 0;  // the error of a call in the group
thread_local std::vector<Called>& calls = *new std::vector<Called>;

bool first_is_called_by_all(Comm& c) {
  for (int r = 0; r < c.size; ++r)
    if (!c.shared->places[r].connects) return false;
  return true;
}

int end_group() {
  std::vector<Called> group;
  group.swap(calls);
  if (const int code = std::exchange(spoiled, 0)) return code;
  if (group.empty()) return 0;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  Comm* const one = group[0].comm;
  const CommRef& c = alive(one);
  Piece piece{c, {}, 0};
  bool collective = false;
  for (const Called& each : group) {
    if (each.comm != one || each.stream != group[0].stream) wrong("a group of several communicators or streams, which naru does not make");
    piece.operations.push_back(each.operation);
    collective |= each.operation.call.what < kSend;
  }
  if (!capturing(c->context)) piece.place = ++c->called, ++c->under_way;
  if (collective) c->shared->places[c->rank].connects = true;
  // The library does this on a thread of its own, so the caller's context need not be current.
  c->later.push_back([piece, stream = group[0].stream] {
    enter(piece.comm->context);
    if (give_waiting(stream, piece) != 0) piece.comm->error = kUnhandledCuda;
    enter(nullptr);
  });
  c->connected = c->connected || !collective;
  c->left = 3;
  if (!c->blocking) return kInProgress;
  while (collective && !first_is_called_by_all(*c)) usleep(100);
  for (const auto& f : c->later) f();
  c->later.clear();
  return 0;
}

int call(const char* name, Comm* handle, void* stream, What what, const void* from, void* to, size_t count, int type, int op, int peer) {
  const auto refused = [&](int code, const char* why) {
    if (depth) spoiled = code;
    return refuse(code, why);
  };
  if (const int code = called(name)) return refused(code, "it was asked to fail");
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const CommRef& c = alive(handle);
  if (!c->joined || c->left > 0 || c->finalized) wrong("a call of a communicator while another is in progress");
  if (c->error) return refused(c->error, "an earlier operation has failed");
  if (context() != c->context || !stream) wrong("a call in another context than the communicator's, or on no stream");
  if (type < 0 || type >= kTypes || op < 0 || op >= kOps || peer < 0 || peer >= c->size) return refused(kInvalidArgument, "an argument");
  if (count * kSizes[type] * (what == kReduceScatter ? static_cast<size_t>(c->size) : 1) > kMost)
    return refused(kInternal, "too large for this fake");
  const bool reads = what != kRecv && (what != kBroadcast || peer == c->rank),
             writes = what != kSend && (what != kReduce || peer == c->rank);
  if (count && ((reads && !from) || (writes && !to))) return refused(kInvalidArgument, "a null pointer");
  if (!aligned(from, kSizes[type]) || !aligned(to, kSizes[type])) return refused(kInvalidArgument, "a misaligned pointer");
  calls.push_back({handle, stream, {{what, type, op, peer, count}, from, to}});
  return depth ? 0 : end_group();
}

void open(Comm& c, const char* path) {
  const int file = ::open(path, O_RDWR);
  void* const memory = file < 0 ? MAP_FAILED : mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (file >= 0) close(file);
  c.shared = memory == MAP_FAILED ? nullptr : static_cast<Shared*>(memory);
}

}  // namespace

struct Id {
  char internal[128];
};
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

EXPORT int ncclGetVersion(int* version) {
  const char* const text = getenv("NARU_FAKE_NCCL_VERSION");
  *version = text ? atoi(text) : 22803;
  return 0;
}
EXPORT const char* ncclGetLastError(Comm*) { return words.c_str(); }
EXPORT int ncclGetUniqueId(Id* id) {
  if (const int code = called("ncclGetUniqueId")) return refuse(code, "it was asked to fail");
  const int file = static_cast<int>(syscall(SYS_memfd_create, "fake_nccl", 1u));
  if (file < 0 || ftruncate(file, static_cast<off_t>(kAll)) != 0) return refuse(kSystem, "no memory to share");
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "/proc/%d/fd/%d", getpid(), file);
  return 0;
}
EXPORT int ncclCommInitRankConfig(Comm** made, int size, Id id, int rank, const Config* config) {
  *made = nullptr;
  if (const int code = called("ncclCommInitRankConfig")) return refuse(code, "it was asked to fail");
  if (!context() || capturing(context())) wrong("a communicator is made without a context, or in a capture");
  if (!config || config->magic != 0xcafebeef || config->size < 20 || config->version < 21400)
    return refuse(kInvalidArgument, "the configuration");
  if (rank < 0 || rank >= size || size > kMostRanks) return refuse(kInvalidArgument, "the rank");
  const auto c = std::make_shared<Comm>();
  c->rank = rank, c->size = size, c->context = context(), c->blocking = config->blocking != 0;
  open(*c, id.internal);
  if (!c->shared) return refuse(kSystem, "the id is of no rank here");
  if (c->shared->places[rank].joined.exchange(true)) return refuse(kInvalidUsage, "the rank has joined already");
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  comms[c.get()] = c;
  *made = c.get();
  if (!c->blocking) return kInProgress;
  wrong("a communicator that blocks, which naru does not make");
}
EXPORT int ncclCommGetAsyncError(Comm* handle, int* error) {
  if (const int code = called("ncclCommGetAsyncError")) return refuse(code, "it was asked to fail");
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const CommRef c = alive(handle);
  *error = c->error;
  if (c->error) words = "a peer has failed";
  if (*error) return 0;
  *error = kInProgress;
  if (!c->joined) {
    for (int r = 0; r < c->size; ++r)
      if (!c->shared->places[r].joined) return 0;
    c->joined = true;
  } else if (c->left > 1) {
    --c->left;
    return 0;
  } else if (c->left == 1) {
    if (!c->connected && !c->later.empty() && !first_is_called_by_all(*c)) return 0;
    c->connected = true, c->left = 0;
    for (const auto& f : c->later) f();
    c->later.clear();
  }
  *error = c->error;
  return 0;
}
EXPORT int ncclCommFinalize(Comm* handle) {
  if (const int code = called("ncclCommFinalize")) return refuse(code, "it was asked to fail");
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const CommRef& c = alive(handle);
  if (c->left > 0 || c->finalized) wrong("a communicator is finalized while a call is in progress, or twice");
  c->finalized = true;
  c->left = 2;
  return kInProgress;
}
static int end(const char* name, Comm* handle, bool aborts) {
  if (const int code = called(name)) return refuse(code, "it was asked to fail");
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const CommRef c = alive(handle);
  if (!aborts && (!c->finalized || c->left > 0 || c->under_way > 0))
    wrong("a communicator is destroyed that was not finalized, or has work under way");
  c->aborted = true;
  comms.erase(handle);
  return 0;
}
EXPORT int ncclCommDestroy(Comm* c) { return end("ncclCommDestroy", c, false); }
EXPORT int ncclCommAbort(Comm* c) { return end("ncclCommAbort", c, true); }

EXPORT int ncclGroupStart() {
  if (const int code = called("ncclGroupStart")) return refuse(code, "it was asked to fail");
  ++depth;
  return 0;
}
EXPORT int ncclGroupEnd() {
  if (depth < 1) wrong("a group ends that has not begun");
  const int code = called("ncclGroupEnd");
  if (--depth > 0) return code;
  if (code) calls.clear(), spoiled = 0;
  return code ? refuse(code, "it was asked to fail") : end_group();
}
EXPORT int ncclAllReduce(const void* from, void* to, size_t count, int type, int op, Comm* c, void* stream) {
  return call("ncclAllReduce", c, stream, kAllReduce, from, to, count, type, op, 0);
}
EXPORT int ncclReduce(const void* from, void* to, size_t count, int type, int op, int root, Comm* c, void* stream) {
  return call("ncclReduce", c, stream, kReduce, from, to, count, type, op, root);
}
EXPORT int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, Comm* c, void* stream) {
  return call("ncclBroadcast", c, stream, kBroadcast, from, to, count, type, 0, root);
}
EXPORT int ncclAllGather(const void* from, void* to, size_t count, int type, Comm* c, void* stream) {
  return call("ncclAllGather", c, stream, kAllGather, from, to, count, type, 0, 0);
}
EXPORT int ncclReduceScatter(const void* from, void* to, size_t count, int type, int op, Comm* c, void* stream) {
  return call("ncclReduceScatter", c, stream, kReduceScatter, from, to, count, type, op, 0);
}
EXPORT int ncclSend(const void* from, size_t count, int type, int peer, Comm* c, void* stream) {
  return call("ncclSend", c, stream, kSend, from, nullptr, count, type, 0, peer);
}
EXPORT int ncclRecv(void* to, size_t count, int type, int peer, Comm* c, void* stream) {
  return call("ncclRecv", c, stream, kRecv, nullptr, to, count, type, 0, peer);
}
