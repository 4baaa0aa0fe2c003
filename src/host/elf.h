#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::host {

// The parts of a 64-bit little-endian ELF file that identify a shared library and its dependencies.
// The file is read with pread, piece by piece: a file that is truncated, or changes meanwhile,
// gives less data, never a crash. All offsets and lengths are checked against the file's size.
class ElfFile {
 public:
  // Fails if it cannot be opened, or is not a shared library or program.
  static Result<ElfFile> Open(const std::string& path);

  // The read-only data that contains string literals: .rodata, or the read-only segments of a file
  // without section names. At most 64 MiB.
  std::string ReadOnlyData() const;
  // The names of imported and exported symbols, separated by NULs.
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

  Descriptor fd_;
  uint64_t size_;
  std::vector<Part> sections_;
  std::vector<Part> constant_segments_;
};

}  // namespace diapason::host
