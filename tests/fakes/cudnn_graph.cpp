/* The graphs of the cuDNN for tests (cudnn.cpp): descriptors that take their attributes until they are finished and none after, proposals of engines, plans
   and packs of addresses; attention is computed operation by operation in float64. Of the engines that it proposes first, one can't be made into a plan.
   A graph of one convolution has engines of its own (cudnn_convolution.h), with their notes.
     NARU_FAKE_ATTENTION_REFUSES   "all": there is no engine; "heuristics": the ones for the first mode are missing; "plan": no plan is made;
                                   "run": a plan is refused when it is to run
     NARU_FAKE_ATTENTION_IDLE      nothing is computed, whatever the sizes */
#include <algorithm>
#include <memory>

#include "cudnn_convolution.h"
#include "cudnn_operations.h"

namespace {

enum { kDescriptors = 44, kNotFinished = 2004, kBadAttribute = 2010 };
enum Of {
  kPointwiseDesc = 0,
  kConvolutionDesc = 1,
  kEngineOf = 2,
  kEngine = 3,
  kHeuristics = 4,
  kPlan = 5,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
  kMatmulDesc = 18,
  kReductionDesc = 21
};
enum {
  kOfHandle = 0,
  kOfType = 1,
  kOfBoolean = 2,
  kOfInt64 = 3,
  kOfFloat = 4,
  kOfDouble = 5,
  kOfPointer = 6,
  kOfConvolution = 7,
  kOfHeuristic = 8,
  kOfNote = 11,
  kOfMode = 14,
  kOfDescriptor = 15,
  kOfReduction = 18
};
constexpr size_t kWorkspace = 256;

struct Descriptor;
struct Value {
  int type = 0;
  std::vector<char> bytes;

  template <class T>
  T one() const {
    T x;
    memcpy(&x, bytes.data(), sizeof x);
    return x;
  }
  template <class T>
  std::vector<T> list() const {
    std::vector<T> all(bytes.size() / sizeof(T));
    memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }
};
struct Descriptor {
  const int kind;
  bool finished = false;
  std::map<int, Value> attributes;
  std::shared_ptr<const Operations> operations;  // of graphs and of what is made from them; or, for a single convolution:
  std::shared_ptr<const Convolution> convolution;
  Handle* handle = nullptr;
  int engine = 0;

  explicit Descriptor(int of) : kind(of) {}
  bool has(int attribute) const { return attributes.count(attribute) != 0; }
  template <class T>
  T one(int attribute) const {
    return attributes.at(attribute).one<T>();
  }
  const Descriptor* other(int attribute) const { return has(attribute) ? one<const Descriptor*>(attribute) : nullptr; }
};

bool refuses(const char* what) {
  const char* const said = getenv("NARU_FAKE_ATTENTION_REFUSES");
  return said && strcmp(said, what) == 0;
}

size_t width_of(int type) {
  switch (type) {
    case kOfHandle:
    case kOfInt64:
    case kOfPointer:
    case kOfDescriptor:
    case kOfDouble:
      return 8;
    case kOfBoolean:
      return 1;
    case kOfType:
    case kOfHeuristic:
    case kOfMode:
    case kOfReduction:
    case kOfFloat:
    case kOfConvolution:
      return 4;
    default:
      return 0;
  }
}

// The type of an attribute's value.
int type_of(int attribute) {
  static const std::map<int, int> kTypes = {
      {100, kOfType},       {101, kOfConvolution}, {102, kOfInt64},  {103, kOfInt64},    {104, kOfInt64},     {105, kOfInt64},
      {106, kOfInt64},      {0, kOfMode},          {1, kOfType},     {9, kOfInt64},      {200, kOfHeuristic}, {400, kOfHandle},
      {800, kOfHandle},     {900, kOfInt64},       {901, kOfType},   {902, kOfInt64},    {903, kOfInt64},     {906, kOfInt64},
      {907, kOfBoolean},    {908, kOfBoolean},     {1000, kOfInt64}, {1001, kOfPointer}, {1003, kOfPointer},  {1500, kOfType},
      {1600, kOfReduction}, {1601, kOfType}};
  const auto found = kTypes.find(attribute);
  return found == kTypes.end() ? int{kOfDescriptor} : found->second;
}

// Alpha and beta of a convolution: float32, or float64 if computed in float64.
bool is_factor(int attribute) { return attribute >= 700 && attribute <= 713 && (attribute - 700) % 6 < 2; }

bool read(const Descriptor* d, ConvTensor& t) {
  if (!d || d->kind != kTensor || !d->finished || d->one<bool>(907)) return false;
  t.number = d->one<int64_t>(906), t.type = d->one<int>(901);
  t.size = d->attributes.at(902).list<int64_t>(), t.stride = d->attributes.at(903).list<int64_t>();
  return true;
}

// Reads the convolution of a graph with a single operation. Returns false if it is none or is incomplete.
bool read(const Descriptor* d, Convolution& c) {
  if (!d || !d->finished || d->kind < 10 || d->kind > 12) return false;
  c.use = static_cast<Use>(d->kind);
  const int first = c.use == Use::Forward ? 700 : c.use == Use::Data ? 706 : 712;
  // Forward and Data list w, x and y in this order; so does Filter.
  if (!read(d->other(first + 3), c.w) || !read(d->other(first + 4), c.x) || !read(d->other(first + 5), c.y)) return false;
  const Descriptor* const about = d->other(first + 2);
  c.computed = about->one<int>(100);
  const Value &alpha = d->attributes.at(first), &beta = d->attributes.at(first + 1);
  if (alpha.type != (c.computed == kDouble ? kOfDouble : kOfFloat) || beta.type != alpha.type) return false;
  if (alpha.type == kOfDouble ? alpha.one<double>() != 1 || beta.one<double>() != 0 : alpha.one<float>() != 1 || beta.one<float>() != 0)
    return false;
  c.padding = about->attributes.at(105).list<int64_t>(), c.stride = about->attributes.at(103).list<int64_t>();
  c.dilation = about->attributes.at(102).list<int64_t>();
  return about->attributes.at(104).list<int64_t>() == c.padding && about->one<int>(101) == 1 &&
         about->one<int64_t>(106) == static_cast<int64_t>(c.padding.size());
}

bool read(const Descriptor* d, OpTensor& t) {
  if (!d || d->kind != kTensor || !d->finished || d->attributes.at(902).list<int64_t>().size() != 4) return false;
  t.number = d->one<int64_t>(906), t.type = d->one<int>(901);
  const auto size = d->attributes.at(902).list<int64_t>(), stride = d->attributes.at(903).list<int64_t>();
  std::copy(size.begin(), size.end(), t.size.begin()), std::copy(stride.begin(), stride.end(), t.stride.begin());
  t.inner = d->one<bool>(907), t.of_host = d->has(908) && d->one<bool>(908);
  return true;
}

// Reads an operation from a finalized descriptor. Returns false if it is none.
bool read(const Descriptor* d, Operation& o) {
  if (!d || !d->finished) return false;
  o.kind = static_cast<Kind>(d->kind);
  std::vector<int> in;
  int out = 0;
  const Descriptor* about = nullptr;
  switch (o.kind) {
    case Kind::Matmul:
      about = d->other(1523), in = {1520, 1521}, out = 1522, o.computed = about->one<int>(1500);
      break;
    case Kind::Reduction:
      about = d->other(1612), in = {1610}, out = 1611, o.mode = about->one<int>(1600), o.computed = about->one<int>(1601);
      break;
    case Kind::Pointwise:
      about = d->other(750), out = 753, o.mode = about->one<int>(0), o.computed = about->one<int>(1);
      o.axis = about->has(9) ? about->one<int64_t>(9) : -1;
      for (const int a : {751, 752, 758})
        if (d->has(a)) in.push_back(a);
      break;
    case Kind::Reshape:
      in = {2200}, out = 2201;
      break;
    default:
      return false;
  }
  for (const int a : in) {
    OpTensor t;
    if (!read(d->other(a), t)) return false;
    o.in.push_back(t);
  }
  return read(d->other(out), o.out);
}

// True if all attributes are set that finalizing requires.
bool is_whole(const Descriptor& d) {
  static const std::map<int, std::vector<int>> kWanted = {{kPointwiseDesc, {0, 1}},
                                                          {kHeuristics, {200, 201}},
                                                          {kPlan, {400, 401}},
                                                          {kGraph, {800, 801}},
                                                          {kPack, {1000, 1001, 1003}},
                                                          {kTensor, {900, 901, 902, 903, 906, 907}},
                                                          {kMatmulDesc, {1500}},
                                                          {kReductionDesc, {1600, 1601}},
                                                          {13, {750, 751, 753}},
                                                          {kConvolutionDesc, {100, 101, 102, 103, 104, 105, 106}},
                                                          {10, {700, 701, 702, 703, 704, 705}},
                                                          {12, {706, 707, 708, 709, 710, 711}},
                                                          {11, {712, 713, 714, 715, 716, 717}},
                                                          {19, {1520, 1521, 1522, 1523}},
                                                          {22, {1610, 1611, 1612}},
                                                          {31, {2200, 2201}}};
  const auto wanted = kWanted.find(d.kind);
  if (wanted == kWanted.end()) return false;
  return std::all_of(wanted->second.begin(), wanted->second.end(), [&](int a) {
    if (is_factor(a)) return d.has(a);
    const Descriptor* const other = type_of(a) == kOfDescriptor && a != 801 ? d.other(a) : nullptr;
    return d.has(a) && (type_of(a) != kOfDescriptor || a == 801 || (other && other->finished));
  });
}

int finish_tensor(const Descriptor& d) {
  const auto size = d.attributes.at(902).list<int64_t>(), stride = d.attributes.at(903).list<int64_t>();
  if (size.size() < 4 || size.size() > 5 || stride.size() != size.size()) return kBadParam;
  for (size_t i = 0; i < size.size(); ++i)
    if (size[i] < 1 || stride[i] < 1) return kBadParam;
  return d.one<int64_t>(900) == 16 ? 0 : int{kBadParam};
}

int finish_graph(Descriptor& d) {
  d.handle = d.one<Handle*>(800);
  if (!d.handle || d.handle->context != context()) return kNotInitialized;
  const auto all = d.attributes.at(801).list<const Descriptor*>();
  if (const auto c = std::make_shared<Convolution>(); all.size() == 1 && read(all[0], *c)) {
    d.convolution = c;
    return c->trouble();
  }
  const auto made = std::make_shared<Operations>();
  for (const Descriptor* one : all) {
    Operation o;
    if (!read(one, o)) return kNotFinished;
    made->all.push_back(o);
    for (const OpTensor* t : {&o.out, o.in.data(), o.in.size() > 1 ? &o.in[1] : nullptr, o.in.size() > 2 ? &o.in[2] : nullptr})
      if (t && !t->inner) made->in_memory[t->number] = *t;
  }
  d.operations = made;
  return 0;
}

int finish_plan(Descriptor& d) {
  const Descriptor* const engine = d.other(401);
  if ((!engine->operations && !engine->convolution) || d.one<Handle*>(400) != engine->handle) return kBadParam;
  if (capturing(engine->handle->context)) return kInternal;  // it loads kernels
  if (engine->convolution ? engine->engine == kForeign : engine->engine == 0 || refuses("plan")) return kNotSupported;
  d.operations = engine->operations, d.convolution = engine->convolution, d.handle = engine->handle, d.engine = engine->engine;
  return 0;
}

int finish(Descriptor& d) {
  if (d.finished || !is_whole(d)) return kBadParam;
  int code = 0;
  if (d.kind == kTensor) code = finish_tensor(d);
  if (d.kind == kGraph) code = finish_graph(d);
  if (d.kind == kPlan) code = finish_plan(d);
  if (d.kind == kHeuristics)
    d.operations = d.other(201)->operations, d.convolution = d.other(201)->convolution, d.handle = d.other(201)->handle;
  if (d.kind == kPack && d.attributes.at(1000).bytes.size() != d.attributes.at(1001).bytes.size()) code = kBadParam;
  d.finished = code == 0;
  return code;
}

// The proposed engines. For attention the first one is unusable; engines of convolutions are described by Engine.
std::vector<int> proposals(const Descriptor& d) {
  const bool first = d.one<int>(200) == 3;
  if (d.convolution) {
    const int type = d.convolution->x.type;
    if (!first || refuses_convolution("all") || (type == kBfloat16 && capability(d.handle->context) < 80)) return {};
    return type == kFloat ? std::vector<int>{kRandom, kForeign, kRounded, kQuick, kModest}
                          : std::vector<int>{kRandom, kForeign, kQuick, kModest};
  }
  const bool none = d.operations->trouble() != 0 || capability(d.handle->context) < 80 || refuses("all");
  if (none || (first && refuses("heuristics"))) return {};
  return first ? std::vector<int>{0, 1} : std::vector<int>{1};
}

std::vector<int> notes_of(const Descriptor& d) {
  if (!d.convolution) return {0};
  return d.engine == kRandom ? std::vector<int>{4} : d.engine == kRounded ? std::vector<int>{0, 9} : std::vector<int>{};
}

int get(const Descriptor& d, int attribute, int type, int64_t wanted, int64_t* count, void* elements) {
  if (!d.finished) return kNotFinished;
  if (d.kind == kPlan && attribute == 402 && type == kOfInt64 && wanted == 1) {
    const auto bytes = static_cast<int64_t>(d.convolution ? d.convolution->workspace_of(d.engine) : kWorkspace);
    memcpy(elements, &bytes, sizeof bytes);
    *count = 1;
    return 0;
  }
  auto** const to = static_cast<Descriptor**>(elements);
  if (d.kind == kEngine && attribute == 300 && type == kOfDescriptor && wanted == 1) {
    if (!to[0] || to[0]->kind != kEngineOf) return kBadParam;
    to[0]->finished = true, to[0]->convolution = d.convolution, to[0]->engine = d.engine;
    *count = 1;
    return 0;
  }
  if (d.kind == kEngineOf && attribute == 1303 && type == kOfNote) {
    const std::vector<int> notes = notes_of(d);
    *count = static_cast<int64_t>(notes.size());
    memcpy(elements, notes.data(), std::min(notes.size(), static_cast<size_t>(wanted)) * sizeof(int));
    return 0;
  }
  if (d.kind != kHeuristics || attribute != 202 || type != kOfDescriptor) return kBadAttribute;
  const std::vector<int> engines = proposals(d);
  *count = static_cast<int64_t>(engines.size());
  for (int64_t i = 0; i < std::min(wanted, *count); ++i) {
    if (!to[i] || to[i]->kind != kEngine) return kBadParam;
    to[i]->finished = true, to[i]->operations = d.operations, to[i]->convolution = d.convolution, to[i]->handle = d.handle;
    to[i]->engine = engines[static_cast<size_t>(i)];
  }
  return 0;
}

// The addresses of a convolution are those of x, w and y.
int convolve(Handle* h, const Descriptor& plan, const std::vector<int64_t>& numbers, const std::vector<char*>& addresses, char* workspace) {
  const auto c = plan.convolution;
  if (plan.engine == kQuick && refuses_convolution("run")) return kNotSupported;
  char* at[3] = {};
  for (size_t i = 0; i < numbers.size(); ++i)
    for (size_t k = 0; k < 3; ++k)
      if ((k == 0 ? c->x : k == 1 ? c->w : c->y).number == numbers[i]) at[k] = addresses[i];
  if (numbers.size() != 3 || !at[0] || !at[1] || !at[2]) return kBadParam;
  for (const char* p : at)
    if (!aligned(p, 16)) return 2003;
  const size_t wanted = c->workspace_of(plan.engine);
  if (wanted > 0 && (!workspace || !aligned(workspace, 16))) return kTooSmall;
  void* const where = h->context;
  static int calls = 0;
  const double noise = plan.engine == kRandom ? 1 + 0.01 * ++calls : 1;
  return give_with_workspace(h->stream, where, workspace, wanted,
                             [=, x = at[0], w = at[1], y = at[2], engine = plan.engine](bool mine) {
                               char *const px = host(where, x, c->x.elements() * item(c->x.type)),
                                           *const pw = host(where, w, c->w.elements() * item(c->w.type)),
                                           *const py = host(where, y, c->y.elements() * item(c->y.type));
                               if (px && pw && py) c->compute(px, pw, py, engine, mine, noise);
                             }) == 0
             ? 0
             : int{kFailed};
}

int execute(Handle* h, const Descriptor& plan, const Descriptor& pack) {
  if (!h || h->context != context()) return kNotInitialized;
  if (!plan.finished || plan.kind != kPlan || plan.handle != h || !pack.finished || pack.kind != kPack) return kNotFinished;
  if (!h->stream) return kInternal;
  const auto numbers = pack.attributes.at(1000).list<int64_t>();
  const auto addresses = pack.attributes.at(1001).list<char*>();
  char* const workspace = pack.one<char*>(1003);
  if (plan.convolution) return convolve(h, plan, numbers, addresses, workspace);
  if (refuses("run")) return kNotSupported;
  const auto operations = plan.operations;
  if (numbers.size() != operations->in_memory.size() || !workspace || !aligned(workspace, 16)) return kBadParam;
  // Host scalars are read now, device memory when the stream reaches the work.
  auto of_host = std::make_shared<std::map<int64_t, float>>();
  std::map<int64_t, char*> of_device;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto found = operations->in_memory.find(numbers[i]);
    if (found == operations->in_memory.end() || !addresses[i]) return kBadParam;
    if (found->second.of_host)
      (*of_host)[numbers[i]] = *reinterpret_cast<const float*>(addresses[i]);
    else if (!aligned(addresses[i], 16))
      return 2003;
    else
      of_device[numbers[i]] = addresses[i];
  }
  if (of_host->size() + of_device.size() != operations->in_memory.size()) return kBadParam;
  if (getenv("NARU_FAKE_ATTENTION_IDLE")) return 0;
  void* const where = h->context;
  return give_with_workspace(h->stream, where, workspace, kWorkspace,
                             [=](bool mine) {
                               std::map<int64_t, char*> memory;
                               for (auto& [number, value] : *of_host) memory[number] = reinterpret_cast<char*>(&value);
                               for (const auto& [number, p] : of_device) {
                                 const OpTensor& t = operations->in_memory.at(number);
                                 if (!(memory[number] = host(where, p, t.reach() * item(t.type)))) return;
                               }
                               operations->compute(memory, mine);
                             }) == 0
             ? 0
             : int{kFailed};
}

std::atomic<int> descriptors{0};

}  // namespace

// For tests: the number of live descriptors.
EXPORT int fake_cudnn_descriptors() { return descriptors; }
EXPORT int cudnnBackendCreateDescriptor(int kind, Descriptor** d) {
  if (const int code = called("cudnnBackendCreateDescriptor")) return code;
  if (kind < 0 || kind >= kDescriptors || !d) return kBadParam;
  *d = new Descriptor(kind);
  ++descriptors;
  return 0;
}
EXPORT int cudnnBackendDestroyDescriptor(Descriptor* d) {
  const int code = called("cudnnBackendDestroyDescriptor");
  delete d;
  --descriptors;
  return code;
}
EXPORT int cudnnBackendSetAttribute(Descriptor* d, int attribute, int type, int64_t count, const void* elements) {
  if (const int code = called("cudnnBackendSetAttribute")) return code;
  if (!d || d->finished || !elements || count < 1) return kBadParam;
  if (is_factor(attribute) ? type != kOfFloat && type != kOfDouble : type != type_of(attribute) || width_of(type) == 0)
    return kBadAttribute;
  const auto* const bytes = static_cast<const char*>(elements);
  d->attributes[attribute] = {type, {bytes, bytes + static_cast<size_t>(count) * width_of(type)}};
  return 0;
}
EXPORT int cudnnBackendGetAttribute(const Descriptor* d, int attribute, int type, int64_t wanted, int64_t* count, void* elements) {
  if (const int code = called("cudnnBackendGetAttribute")) return code;
  return !d || !count ? int{kBadParam} : get(*d, attribute, type, wanted, count, elements);
}
EXPORT int cudnnBackendFinalize(Descriptor* d) {
  if (const int code = called("cudnnBackendFinalize")) return code;
  return d ? finish(*d) : int{kBadParam};
}
EXPORT int cudnnBackendExecute(Handle* h, const Descriptor* plan, const Descriptor* pack) {
  if (const int code = called("cudnnBackendExecute")) return code;
  return plan && pack ? execute(h, *plan, *pack) : int{kBadParam};
}
