#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace diapason::cell_server {

// The jobs of a server and their cells, in memory. Every change is a record, which the server also
// writes to its file: applying the records of the file again gives the same table.
//
// Not thread-safe; no input or output.
struct CellJob {
  std::string nonce;
  uint64_t writes = 0;                                    // cells that were ever written
  std::map<std::string, std::string, std::less<>> cells;  // sorted, for prefixes
  std::set<uint64_t> members;                             // clients that have not left
  bool left = false;                                      // a member has
  // Not in the file: a restart only keeps cells for longer.
  std::map<std::string, uint64_t, std::less<>> done;  // by prefix, how many members need it no more
  size_t connections = 0;
  Deadline used{};
};

class CellTable {
 public:
  using Jobs = std::map<std::string, CellJob, std::less<>>;

  // nullptr: there is none. The pointer is valid until the job is removed.
  CellJob* Find(std::string_view job);
  Jobs& jobs() { return jobs_; }
  // About what the table takes in memory.
  size_t bytes() const { return bytes_; }
  // What a cell adds to bytes().
  static size_t CellBytes(std::string_view key, std::string_view value);

  // An error: the record makes no sense here.
  Status Apply(std::string_view record);
  // Records that make an equal table.
  void Snapshot(const std::function<void(std::string_view)>& add) const;

 private:
  void RemoveCells(CellJob* job, std::string_view prefix);

  Jobs jobs_;
  size_t bytes_ = 0;
};

std::string JobRecord(std::string_view job, std::string_view nonce, uint64_t writes);
std::string CellRecord(std::string_view job, std::string_view key, std::string_view value);
std::string MemberRecord(std::string_view job, uint64_t client);
std::string LeftRecord(std::string_view job, uint64_t client);
std::string ForgetRecord(std::string_view job, std::string_view prefix);
std::string RemoveRecord(std::string_view job);

}  // namespace diapason::cell_server
