// PyTorch's file format since 1.6, over zip.h and pickle.h.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "core/tensor_impl.h"
#include "data/pickle.h"
#include "data/zip.h"
#include "naru/device/devices.h"
#include "naru/io.h"
#include "naru/ops.h"
#include "runtime/os/atomic_file.h"
#include "runtime/os/mapped_file.h"

namespace naru {
namespace {

using data::StorageId;
using data::ZipReader;
using data::ZipWriter;

void write_archive(const Value& value, const std::string& root, const ZipWriter::Out& out) {
  const data::Pickled pickled = data::pickle(value);
  ZipWriter zip(out);
  zip.add(root + "/data.pkl", pickled.text);
  zip.add(root + "/.format_version", "1");
  zip.add(root + "/.storage_alignment", std::to_string(ZipWriter::kAlignment));
  zip.add(root + "/byteorder", std::endian::native == std::endian::little ? "little" : "big");
  for (size_t i = 0; i < pickled.storages.size(); ++i) {
    const Tensor host = pickled.storages[i].cpu().contiguous();
    const size_t bytes = static_cast<size_t>(host.numel()) * host.element_size();
    zip.add(root + "/data/" + std::to_string(i),
            bytes ? std::string_view(static_cast<const char*>(host.data_ptr()), bytes) : std::string_view());
  }
  zip.add(root + "/version", "3\n");
  zip.finish();
}

// "model" for "folder/model.pt": PyTorch's name for the folder of the records.
std::string stem_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

// The device that the storage was saved from, if this machine has it.
std::optional<Device> device_if_present(const std::string& location) {
  try {
    const Device d(location);
    if (d.type == DeviceType::Cpu || std::max<int>(d.index, 0) >= device_count(d.type)) return {};
    return d;
  } catch (const Error&) {  // an unknown kind of device
    return {};
  }
}

// The storages of an archive. Each is created once. file: a mapped file whose pages tensors may share, or null.
class Storages {
 public:
  Storages(const ZipReader& zip, std::string root, std::shared_ptr<runtime::MappedFile> file, std::optional<Device> device)
      : zip_(zip), root_(std::move(root)), file_(std::move(file)), device_(device) {}

  Tensor operator()(const StorageId& id) {
    const auto known = made_.find(id.key);
    if (known != made_.end()) return known->second.dtype() == id.dtype ? known->second : seen_as(known->second, id.dtype);
    const std::string name = root_ + "data/" + id.key;
    const auto record = zip_.records().find(name);
    if (record != zip_.records().end() && record->second.size != static_cast<uint64_t>(id.numel) * size_of(id.dtype))
      throw ValueError("storage {} should have {} bytes and has {}", id.key, static_cast<uint64_t>(id.numel) * size_of(id.dtype),
                       record->second.size);
    Tensor t = on_host(zip_.read(name), id);
    const std::optional<Device> target = device_ ? device_ : device_if_present(id.location);
    if (target) t = t.to(*target);
    return made_[id.key] = t;
  }

 private:
  static Tensor seen_as(const Tensor& t, DType dtype) {
    if (static_cast<uint64_t>(t.numel()) * t.element_size() % size_of(dtype))
      throw ValueError("a storage of {} bytes is no whole number of {}", static_cast<uint64_t>(t.numel()) * t.element_size(),
                       name_of(dtype));
    return dtype == DType::Bool ? t.ne(0) : t.view(dtype);
  }
  Tensor on_host(std::string_view bytes, const StorageId& id) const {
    const Dims sizes{id.numel};
    if (bytes.empty()) return empty(sizes, Options(id.dtype, Device(DeviceType::Cpu)));
    if (file_ && id.dtype != DType::Bool && reinterpret_cast<uintptr_t>(bytes.data()) % size_of(id.dtype) == 0) {
      const Tensor t = from_blob(const_cast<char*>(bytes.data()), sizes, {1}, id.dtype, [file = file_] {});
      --t.impl()->storage->externally_aliased;  // no other owner of these pages
      return t;
    }
    const Tensor t = empty(sizes, Options(id.dtype, Device(DeviceType::Cpu)));
    char* const to = static_cast<char*>(t.data_ptr());
    std::memcpy(to, bytes.data(), bytes.size());
    // Normalise: a bool must be 0 or 1, whatever the file holds.
    if (id.dtype == DType::Bool) std::transform(to, to + bytes.size(), to, [](char c) { return static_cast<char>(c != 0); });
    return t;
  }

  const ZipReader& zip_;
  std::string root_;
  std::shared_ptr<runtime::MappedFile> file_;
  std::optional<Device> device_;
  std::unordered_map<std::string, Tensor> made_;
};

Value read_archive(std::string_view bytes, const std::shared_ptr<runtime::MappedFile>& file, std::optional<Device> device) {
  const ZipReader zip(bytes);
  std::string root;
  int pickles = 0;
  for (const auto& [name, record] : zip.records())
    if (const size_t slash = name.find('/'); slash != std::string::npos && name.substr(slash + 1) == "data.pkl")
      root = name.substr(0, slash + 1), ++pickles;
  if (pickles != 1) throw RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found (no file written by torch.save)");
  const bool little = !zip.records().contains(root + "byteorder") || zip.read(root + "byteorder") == "little";
  if (little != (std::endian::native == std::endian::little))
    throw RuntimeError("load: the file was written by a machine with the other order of bytes");
  Storages storages(zip, root, file, device);
  return data::unpickle(zip.read(root + "data.pkl"), [&](const StorageId& id) { return storages(id); });
}

}  // namespace

void save(const Value& value, const std::string& path) {
  try {
    runtime::AtomicFile file(path);
    write_archive(value, stem_of(path), [&](std::string_view bytes) { file.write(bytes); });
    file.commit();
  } catch (const runtime::FileError& e) {
    throw RuntimeError("save: {}", e.what());
  }
}
std::string save_to_bytes(const Value& value) {
  std::string all;
  write_archive(value, "archive", [&](std::string_view bytes) { all += bytes; });
  return all;
}

Value load(const std::string& path, std::optional<Device> device, SourceLocation where) {
  const SourceLocationScope here(where);
  const auto file = std::make_shared<runtime::MappedFile>("load", path);
  return read_archive(file->bytes(), file, device);
}
Value load_from_bytes(std::string_view bytes, std::optional<Device> device) { return read_archive(bytes, nullptr, device); }

}  // namespace naru
