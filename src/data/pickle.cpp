#include "data/pickle.h"

#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "core/tensor_impl.h"
#include "data/pickle_names.h"

namespace naru::data {
namespace {

bool is_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<uint8_t>(s[i]);
    const size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : 4;
    if (more == 4 || more >= s.size() - i) return false;
    uint32_t point = more == 0 ? c : c & (0x3Fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto d = static_cast<uint8_t>(s[i + k]);
      if ((d & 0xC0) != 0x80) return false;
      point = point << 6 | (d & 0x3F);
    }
    if ((more == 2 && point < 0x800) || (more == 3 && (point < 0x10000 || point > 0x10FFFF))) return false;
    i += more + 1;
  }
  return true;
}

// Protocol 2 without a memo: repeated objects are written each time, storages once.
class Pickler {
 public:
  Pickled take(const Value& value) {
    out_.text = "\x80\x02";
    write(value, 0);
    out_.text += '.';
    return std::move(out_);
  }

 private:
  void write(const Value& v, int depth) {
    using Kind = Value::Kind;
    if (depth > kMostNested) throw ValueError("save: containers are nested more than {} deep, or hold themselves", kMostNested);
    switch (v.kind()) {
      case Kind::None:
        out_.text += 'N';
        break;
      case Kind::Bool:
        out_.text += v.to_bool() ? '\x88' : '\x89';
        break;
      case Kind::Int:
        number(v.to_int());
        break;
      case Kind::Float:
        out_.text += 'G';
        for (int shift = 56; shift >= 0; shift -= 8) out_.text += static_cast<char>(std::bit_cast<uint64_t>(v.to_double()) >> shift);
        break;
      case Kind::Text:
        if (!is_utf8(v.text())) throw ValueError("save: a text is no UTF-8; Value::bytes(...) holds bytes");
        text(v.text());
        break;
      case Kind::Bytes:
        bytes(v.text());
        break;
      case Kind::Tensor:
        tensor(v.tensor());
        break;
      case Kind::List:
        sequence("](", v, "e", depth);
        break;
      case Kind::Tuple:
        sequence("(", v, "t", depth);
        break;
      case Kind::Dict:
        sequence("}(", v, "u", depth);
        break;
    }
  }
  void sequence(const char* begin, const Value& v, const char* end, int depth) {
    out_.text += begin;
    for (const Value& one : v.values()) write(one, depth + 1);
    out_.text += end;
  }
  void little(uint64_t v, int n) {
    for (int i = 0; i < n; ++i) out_.text += static_cast<char>(v >> 8 * i);
  }
  void number(int64_t v) {
    const bool narrow = v == static_cast<int32_t>(v);
    out_.text += narrow ? "J" : "\x8a\x08";
    little(static_cast<uint64_t>(v), narrow ? 4 : 8);
  }
  void text(std::string_view s) {
    if (s.size() > UINT32_MAX) throw ValueError("save: a text of {} bytes is too long", s.size());
    out_.text += 'X';
    little(s.size(), 4);
    out_.text += s;
  }
  void global(const char* module, const char* name) { out_.text.append("c").append(module).append("\n").append(name).append("\n"); }
  // As Python writes bytes in this protocol: a string with one character per byte.
  void bytes(std::string_view b) {
    global("_codecs", "encode");
    text(latin1_text(b));
    text("latin1");
    out_.text += "\x86R";
  }
  void tuple(const Dims& numbers) {
    out_.text += '(';
    for (const int64_t n : numbers) number(n);
    out_.text += 't';
  }

  void tensor(const Tensor& t) {
    if (!t.defined()) {
      out_.text += 'N';
      return;
    }
    if (t.device().is_meta()) {
      global("torch._utils", "_rebuild_meta_tensor_no_storage");
      out_.text += '(';
      global("torch", std::string(name_of(t.dtype())).c_str());
      tuple(t.sizes());
      tuple(t.strides());
      out_.text += t.requires_grad() ? "\x88tR" : "\x89tR";
      return;
    }
    // Dtypes without a PyTorch storage type are stored as bytes, and the tensor records its dtype.
    const StorageName* const kind = storage_of(t.dtype());
    const auto count = static_cast<int64_t>(t.impl()->storage->bytes / t.element_size());
    const auto [at, fresh] = known_.try_emplace({t.impl()->storage.get(), t.dtype()}, out_.storages.size());
    if (fresh) out_.storages.push_back(t.detach().as_strided({count}, {1}, 0));

    global("torch._utils", kind ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_.text += "((";
    text("storage");
    global(kind ? "torch" : "torch.storage", kind ? kind->name : "UntypedStorage");
    text(std::to_string(at->second));
    text(t.device().str());
    number(kind ? count : count * static_cast<int64_t>(t.element_size()));
    out_.text += "tQ";
    number(t.storage_offset());
    tuple(t.sizes());
    tuple(t.strides());
    out_.text += t.requires_grad() ? '\x88' : '\x89';
    global("collections", "OrderedDict");
    out_.text += ")R";
    if (!kind) global("torch", std::string(name_of(t.dtype())).c_str());
    out_.text += "tR";
  }

  Pickled out_;
  std::map<std::pair<const Storage*, DType>, size_t> known_;
};

}  // namespace

Pickled pickle(const Value& value) { return Pickler().take(value); }

}  // namespace naru::data
