#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace diapason::host {

// The parts of a 64-bit little-endian ELF file that tell what a shared library is and what it
// needs. The file is read with pread, a piece at a time: one that is cut short, or changes while it
// is read, gives less, never a crash. Whatever it claims about itself is checked against its size.
class ElfFile {
 public:
  // An error when it cannot be opened, or is no shared library or program.
  static Result<ElfFile> Open(const std::string& path);
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&&) = delete;
  ElfFile(const ElfFile&) = delete;
  ~ElfFile();

  // The read-only data in which string literals lie: .rodata, or the read-only segments of a file
  // without section names. At most 64 MiB.
  std::string ReadOnlyData() const;
  // The names of the symbols it imports and exports, one after the other with NULs between them.
  std::string SymbolNames() const;
  // DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH.
  struct Dynamic {
    std::vector<std::string> needed;
    std::string soname;
    std::string rpath;
    std::string runpath;
  };
  Dynamic ReadDynamic() const;

 private:
  struct Part {
    std::string name;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  ElfFile(int fd, uint64_t size) : fd_(fd), size_(size) {}
  Status ReadTables(const std::string& path);
  std::string Bytes(uint64_t offset, uint64_t size) const;
  const Part* Section(std::string_view name) const;

  int fd_;
  uint64_t size_;
  std::vector<Part> sections_;
  std::vector<Part> constant_segments_;
};

}  // namespace diapason::host
