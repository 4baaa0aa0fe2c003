#include "host/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace diapason::host {
namespace {

constexpr uint64_t kMostData = uint64_t{64} << 20;
constexpr uint64_t kMostNames = uint64_t{64} << 20;
constexpr size_t kMostEntries = 65536;
constexpr size_t kMostText = 4096;

// The string at `offset` of a string table, which may be truncated anywhere.
std::string TextAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return "";
  const std::string_view rest = table.substr(offset, kMostText);
  return std::string(rest.substr(0, rest.find('\0')));
}

template <typename Entry>
std::vector<Entry> EntriesOf(const std::string& bytes) {
  std::vector<Entry> entries(bytes.size() / sizeof(Entry));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
  return entries;
}

}  // namespace

Result<ElfFile> ElfFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const std::string why = path + ": " + ErrnoText(errno);
    return errno == ENOENT ? NotFound(why) : IoError(why);
  }
  struct stat about {};
  const bool regular = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  ElfFile file(fd, regular ? static_cast<uint64_t>(about.st_size) : 0);
  if (!regular) return Invalid(path + ": not a regular file");
  RETURN_IF_ERROR(file.ReadTables(path));
  return file;
}

std::string ElfFile::Bytes(uint64_t offset, uint64_t size) const {
  if (offset >= size_) return "";
  size = std::min(size, size_ - offset);
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = pread(fd_.get(), bytes.data() + have, bytes.size() - have,
                              static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Status ElfFile::ReadTables(const std::string& path) {
  Elf64_Ehdr header{};
  const std::string start = Bytes(0, sizeof header);
  if (start.size() < EI_NIDENT || std::memcmp(start.data(), ELFMAG, SELFMAG) != 0) {
    return Invalid(path + ": not a shared library (no ELF file)");
  }
  if (start.size() < sizeof header) return Invalid(path + ": cut short");
  std::memcpy(&header, start.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Invalid(path + ": not a 64-bit little-endian ELF file");
  }
  if (header.e_type != ET_DYN && header.e_type != ET_EXEC) {
    return Invalid(path + ": an ELF file, but neither a shared library nor a program");
  }
  if (header.e_shentsize == sizeof(Elf64_Shdr)) {
    const auto sections =
        EntriesOf<Elf64_Shdr>(Bytes(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)));
    std::string names;
    if (header.e_shstrndx < sections.size()) {
      const Elf64_Shdr& table = sections[header.e_shstrndx];
      names = Bytes(table.sh_offset, std::min<uint64_t>(table.sh_size, 1 << 20));
    }
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type == SHT_NOBITS) continue;
      sections_.push_back({TextAt(names, section.sh_name), section.sh_offset, section.sh_size});
    }
  }
  if (header.e_phentsize == sizeof(Elf64_Phdr)) {
    const auto segments =
        EntriesOf<Elf64_Phdr>(Bytes(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)));
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
      constant_segments_.push_back({"", segment.p_offset, segment.p_filesz});
    }
  }
  return {};
}

const ElfFile::Part* ElfFile::Section(std::string_view name) const {
  for (const Part& part : sections_) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

std::string ElfFile::ReadOnlyData() const {
  // Several: compilers also write .rodata.str1.1 and the like, which most linkers merge.
  std::string data;
  for (const Part& part : sections_) {
    if (part.name != ".rodata" && !part.name.starts_with(".rodata.")) continue;
    data += Bytes(part.offset, std::min(part.size, kMostData - data.size()));
    data += '\0';
    if (data.size() >= kMostData) return data;
  }
  if (!data.empty()) return data;
  for (const Part& part : constant_segments_) {
    data += Bytes(part.offset, std::min(part.size, kMostData - data.size()));
    data += '\0';
    if (data.size() >= kMostData) break;
  }
  return data;
}

std::string ElfFile::SymbolNames() const {
  const Part* part = Section(".dynstr");
  return part == nullptr ? "" : Bytes(part->offset, std::min(part->size, kMostNames));
}

ElfFile::Dynamic ElfFile::ReadDynamic() const {
  Dynamic dynamic;
  const Part* part = Section(".dynamic");
  if (part == nullptr) return dynamic;
  const std::string names = SymbolNames();
  const auto entries = EntriesOf<Elf64_Dyn>(
      Bytes(part->offset, std::min<uint64_t>(part->size, kMostEntries * sizeof(Elf64_Dyn))));
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) dynamic.needed.push_back(TextAt(names, entry.d_un.d_val));
    if (entry.d_tag == DT_SONAME) dynamic.soname = TextAt(names, entry.d_un.d_val);
    if (entry.d_tag == DT_RPATH) dynamic.rpath = TextAt(names, entry.d_un.d_val);
    if (entry.d_tag == DT_RUNPATH) dynamic.runpath = TextAt(names, entry.d_un.d_val);
  }
  return dynamic;
}

}  // namespace diapason::host
