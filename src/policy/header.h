#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "policy/policy.h"

namespace diapason::policy {

// Reads the `# diapason: key=value ...` comments of a policy file; there may be several. Values
// with blanks are in double quotes. An unknown key or a newer format version is an error: a reader
// that does not understand a header must not apply the rows.
struct HeaderReader {
  PolicyHeader header;
  std::optional<Library> library;
  std::optional<uint64_t> checksum;
  int checksum_line = 0;

  Status Read(std::string_view line);

 private:
  Status Set(std::string_view key, std::string_view value);
};

bool IsHeaderLine(std::string_view line);

}  // namespace diapason::policy
