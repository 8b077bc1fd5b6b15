#include "kernels/host/shared_object.h"

#include <elf.h>

#include <cstring>

namespace naru::cpu {
namespace {

template <class T>
std::optional<T> part_at(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return {};
  T t;
  std::memcpy(&t, bytes.data() + at, sizeof t);
  return t;
}

}  // namespace

std::optional<SharedObject> SharedObject::read(std::string_view bytes) {
  const auto header = part_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return {};
  const auto section = [&](uint64_t i) { return part_at<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr)); };
  SharedObject object;
  bool found = false;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto table = section(i);
    if (!table) return {};
    if (table->sh_flags & SHF_TLS) object.thread_bytes += static_cast<int64_t>(table->sh_size);
    if (table->sh_type != SHT_DYNSYM) continue;
    const auto texts = section(table->sh_link);
    if (!texts || texts->sh_offset > bytes.size() || texts->sh_size > bytes.size() - texts->sh_offset) return {};
    const std::string_view text = bytes.substr(texts->sh_offset, texts->sh_size);
    found = true;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = part_at<Elf64_Sym>(bytes, table->sh_offset + at);
      if (!symbol || symbol->st_name >= text.size()) return {};
      if (symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0) continue;
      const std::string_view name = text.substr(symbol->st_name);
      object.undefined.emplace_back(name.substr(0, name.find('\0')));
    }
  }
  if (!found) return {};
  return object;
}

}  // namespace naru::cpu
