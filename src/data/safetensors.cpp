#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/tensor_impl.h"
#include "naru/error.h"
#include "naru/io.h"
#include "naru/ops.h"
#include "runtime/os/atomic_file.h"
#include "runtime/os/mapped_file.h"

namespace naru {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostHeader = 100'000'000;

struct TypeName {
  const char* name;
  DType type;
};
constexpr TypeName kTypes[] = {{"BOOL", DType::Bool},      {"U8", DType::U8},   {"I8", DType::I8},          {"I16", DType::I16},
                               {"U16", kUInt16},           {"U32", kUInt32},    {"U64", kUInt64},           {"I32", DType::I32},
                               {"I64", DType::I64},        {"F16", DType::F16}, {"BF16", DType::BF16},      {"F32", DType::F32},
                               {"F64", DType::F64},        {"C64", kComplex64}, {"F8_E4M3", kFloat8E4M3FN}, {"F8_E5M2", kFloat8E5M2},
                               {"F8_E8M0", kFloat8E8M0FNU}};

const char* name_in_file(DType t) {
  for (const TypeName& n : kTypes)
    if (n.type == t) return n.name;
  throw ValueError(
      "safetensors: the format has no {}; of complex types it has complex64, of float8 types float8_e4m3fn, float8_e5m2 and float8_e8m0fnu",
      name_of(t));
}

DType type_of(const std::string& tensor, const std::string& name) {
  for (const TypeName& n : kTypes)
    if (name == n.name) return n.type;
  throw ValueError(
      "safetensors: tensor '{}' has type {}, which naru does not have; wanted BOOL, U8 to U64, I8 to I64, F16, BF16, F32, F64, F8_E4M3, "
      "F8_E5M2, F8_E8M0 or C64",
      tensor, name);
}

// Checks what the DOM parser does not report: duplicate keys of an object (readers differ in which one counts), and nesting depth. (The parser
// with a callback could, but in time quadratic in the number of tensors.)
class Looker : public nlohmann::json_sax<Json> {
 public:
  std::string twice;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return deeper();
  }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) twice = name;
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return --depth_, true;
  }
  bool start_array(size_t) override { return deeper(); }
  bool end_array() override { return --depth_, true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool deeper() {
    if (depth_++ > 8) throw ValueError("safetensors: the header is nested too deeply");
    return true;
  }
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  int depth_ = 0;
};

Json parse_header(std::string_view text) {
  Looker looker;
  Json::sax_parse(text.begin(), text.end(), &looker);  // at a syntax error it stops; the parser below then reports it
  Json header;
  try {
    header = Json::parse(text.begin(), text.end());
  } catch (const Json::exception& e) {
    std::string why = e.what();
    if (const size_t kind = why.find("] "); kind != std::string::npos) why.erase(0, kind + 2);  // "[json.exception.parse_error.101] "
    for (char& c : why)
      if (c < ' ' || c > '~') c = '?';
    throw ValueError("safetensors: the header is no JSON: {}", why);
  }
  if (!looker.twice.empty()) throw ValueError("safetensors: the header has '{}' twice", looker.twice);
  if (!header.is_object()) throw ValueError("safetensors: wanted an object as header, got {}", header.type_name());
  return header;
}

struct Entry {
  std::string name;
  DType type;
  Dims sizes;
  uint64_t begin, end;
};

uint64_t number(const Json& v, const std::string& tensor, const char* what) {
  if (!v.is_number_unsigned()) throw ValueError("safetensors: tensor '{}': wanted numbers from 0 on as {}, got {}", tensor, what, v.dump());
  return v.get<uint64_t>();
}

Entry read_entry(const std::string& name, const Json& v) {
  if (!v.is_object() || !v.contains("dtype") || !v.contains("shape") || !v.contains("data_offsets") || !v["dtype"].is_string() ||
      !v["shape"].is_array() || !v["data_offsets"].is_array() || v["data_offsets"].size() != 2)
    throw ValueError("safetensors: tensor '{}': wanted dtype, shape and two data_offsets, got {}", name, v.dump().substr(0, 200));
  Entry e{name, type_of(name, v["dtype"].get<std::string>()), {}, 0, 0};
  unsigned __int128 bytes = size_of(e.type);
  for (const Json& n : v["shape"]) {
    const uint64_t size = number(n, name, "shape");
    if (size > static_cast<uint64_t>(INT64_MAX)) throw ValueError("safetensors: tensor '{}': a size of {} is too large", name, size);
    e.sizes.push_back(static_cast<int64_t>(size));
    bytes *= size;
    if (bytes > (static_cast<unsigned __int128>(1) << 62))
      throw ValueError("safetensors: tensor '{}': its shape {} is too large", name, v["shape"].dump());
  }
  if (e.sizes.size() > 64) throw ValueError("safetensors: tensor '{}': wanted at most 64 dimensions, got {}", name, e.sizes.size());
  e.begin = number(v["data_offsets"][0], name, "data_offsets"), e.end = number(v["data_offsets"][1], name, "data_offsets");
  if (e.end < e.begin || e.end - e.begin != static_cast<uint64_t>(bytes))
    throw ValueError("safetensors: tensor '{}': shape {} and type {} make {} bytes, its data_offsets {}", name, v["shape"].dump(),
                     v["dtype"].dump(), static_cast<uint64_t>(bytes), v["data_offsets"].dump());
  return e;
}

struct Layout {
  std::vector<Entry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
  uint64_t start;  // offset of the data
};

Layout read_layout(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < 8) throw ValueError("safetensors: wanted at least 8 bytes, got {}", bytes.size());
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  if (length > kMostHeader)
    throw ValueError("safetensors: the header's length is {}, wanted at most {}; is this a safetensors file?", length, kMostHeader);
  if (length > bytes.size() - 8)
    throw ValueError("safetensors: the header's length is {}, but only {} bytes follow; the file is cut short", length, bytes.size() - 8);
  const std::string_view text = bytes.substr(8, length);
  if (text.empty() || text[0] != '{') throw ValueError("safetensors: wanted a header that begins with a brace");
  const Json header = parse_header(text);
  Layout l;
  l.start = 8 + length;
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      l.entries.push_back(read_entry(name, value));
      continue;
    }
    if (!value.is_object()) throw ValueError("safetensors: wanted an object of texts as __metadata__, got {}", value.type_name());
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string())
        throw ValueError("safetensors: wanted texts as __metadata__, got {} for '{}'", text_value.type_name(), key);
      l.metadata[key] = text_value.get<std::string>();
    }
  }
  std::sort(l.entries.begin(), l.entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
  uint64_t at = 0;
  for (const Entry& e : l.entries) {
    if (e.begin != at)
      throw ValueError("safetensors: tensor '{}' begins at byte {} of the data, wanted {}: tensors must neither overlap nor leave gaps",
                       e.name, e.begin, at);
    at = e.end;
  }
  if (at != bytes.size() - l.start)
    throw ValueError("safetensors: the tensors have {} bytes, the file {}; {}", at, bytes.size() - l.start,
                     at > bytes.size() - l.start ? "it is cut short" : "it goes on behind them");
  return l;
}

Tensor copied(const Entry& e, const char* data) {
  Tensor t = empty(e.sizes, Options(e.type));
  if (e.end == e.begin) return t;
  char* const to = static_cast<char*>(t.data_ptr());
  std::memcpy(to, data, e.end - e.begin);
  // Normalise: a bool must be 0 or 1, whatever the file holds.
  if (e.type == DType::Bool) std::transform(to, to + (e.end - e.begin), to, [](char c) { return static_cast<char>(c != 0); });
  return t;
}

template <class Make>
SafeTensors tensors_of(const Layout& l, Make make) {
  SafeTensors out;
  out.metadata = l.metadata;
  for (const Entry& e : l.entries) out.tensors.emplace_back(e.name, make(e));
  return out;
}

}  // namespace

SafeTensors load_safetensors(const std::string& path) {
  const auto map = std::make_shared<runtime::MappedFile>("safetensors", path);
  const Layout l = read_layout(map->bytes());
  return tensors_of(l, [&](const Entry& e) {
    if (e.begin == e.end) return empty(e.sizes, Options(e.type));
    char* const data = map->data() + l.start + e.begin;
    const Tensor t = from_blob(data, e.sizes, contiguous_strides(e.sizes), e.type, [map] {});
    const bool aligned = reinterpret_cast<uintptr_t>(data) % size_of(e.type) == 0;
    if (aligned && e.type != DType::Bool) {
      --t.impl()->storage->externally_aliased;  // no other owner of these pages
      return t;
    }
    return copied(e, data);
  });
}

SafeTensors parse_safetensors(std::string_view bytes) {
  const Layout l = read_layout(bytes);
  return tensors_of(l, [&](const Entry& e) { return copied(e, bytes.data() + l.start + e.begin); });
}

namespace {

// The header, preceded by its length, and the tensors in the order of their data: wider types first, so that all are aligned.
std::string header_of(const SafeTensors& s, std::vector<Tensor>& order) {
  std::vector<const std::pair<std::string, Tensor>*> sorted;
  std::set<std::string> names;
  for (const auto& entry : s.tensors) {
    if (!names.insert(entry.first).second || entry.first == "__metadata__")
      throw ValueError("safetensors: the name '{}' is {}", entry.first, entry.first == "__metadata__" ? "reserved" : "there twice");
    if (!entry.second.defined()) throw ValueError("safetensors: '{}' is an undefined tensor", entry.first);
    sorted.push_back(&entry);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    const size_t wa = a->second.element_size(), wb = b->second.element_size();
    return wa != wb ? wa > wb : a->first < b->first;
  });
  Json header = Json::object();
  if (!s.metadata.empty()) header["__metadata__"] = s.metadata;
  uint64_t at = 0;
  for (const auto* entry : sorted) {
    const Tensor& t = entry->second;
    const uint64_t bytes = static_cast<uint64_t>(t.numel()) * t.element_size();
    header[entry->first] = {{"dtype", name_in_file(t.dtype())},
                            {"shape", std::vector<int64_t>(t.sizes().begin(), t.sizes().end())},
                            {"data_offsets", {at, at + bytes}}};
    at += bytes;
    order.push_back(t.detach().cpu().contiguous());
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw ValueError("safetensors: names and metadata must be UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMostHeader)
    throw ValueError("safetensors: the header would have {} bytes, wanted at most {}", text.size(), kMostHeader);
  std::string front(8, '\0');
  for (int i = 0; i < 8; ++i) front[static_cast<size_t>(i)] = static_cast<char>(text.size() >> 8 * i);
  return front + text;
}

}  // namespace

std::string to_safetensors(const SafeTensors& s) {
  std::vector<Tensor> order;
  std::string out = header_of(s, order);
  for (const Tensor& t : order)
    if (t.numel()) out.append(static_cast<const char*>(t.data_ptr()), static_cast<size_t>(t.numel()) * t.element_size());
  return out;
}

void save_safetensors(const std::string& path, const SafeTensors& s) {
  std::vector<Tensor> order;
  const std::string front = header_of(s, order);
  try {
    runtime::AtomicFile file(path);
    file.write(front);
    for (const Tensor& t : order)
      if (t.numel()) file.write({static_cast<const char*>(t.data_ptr()), static_cast<size_t>(t.numel()) * t.element_size()});
    file.commit();
  } catch (const runtime::FileError& e) {
    throw RuntimeError("safetensors: {}", e.what());
  }
}

}  // namespace naru
