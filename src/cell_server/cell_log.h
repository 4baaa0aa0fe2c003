#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::cell_server {

// The file in which a server keeps its cells: batches of records, appended. Commit() returns when
// the batch is on the disk.
//
// A batch has a head of four numbers (length, number of the batch, checksum of the records,
// checksum of the head), and then its records, each with its length. Only the last batch can be
// incomplete: the server died while it wrote it, and has acknowledged none of it. Open() cuts it
// off. Any other damage is an error, since acknowledged records would be missing.
//
// The file belongs to this user alone (0600), and one process at a time has it open. Not
// thread-safe.
class CellLog {
 public:
  using Apply = std::function<Status(std::string_view record)>;

  // Opens or creates the file, and hands over every record in it. `name` is its path.
  static Result<CellLog> Open(const std::string& path, const Apply& apply);

  // Keeps a record for the next batch.
  void Append(std::string_view record);
  size_t buffered() const { return buffer_.size(); }
  // Writes the batch. kNoRoom or kIo: nothing of it is in the file, and the file can be used on.
  // kInternal: what is in the file is not known; the server must end.
  Status Commit();
  // Bytes of the file.
  uint64_t size() const { return size_; }
  // Replaces the file by one with these records alone, atomically. On failure the old one stays.
  Status Rewrite(const std::function<void(const std::function<void(std::string_view)>&)>& records);

 private:
  explicit CellLog(std::string path) : path_(std::move(path)) {}
  Status Create();
  Status ReadAll(const Apply& apply);
  Status Lock() const;
  Status SyncFolder() const;

  std::string path_;
  Descriptor file_;
  uint64_t size_ = 0;    // of what is committed
  uint64_t number_ = 0;  // of the next batch
  std::string buffer_;
};

// Limit on a batch's records: the server commits before they are more.
inline constexpr size_t kMostBatch = size_t{32} << 20U;

}  // namespace diapason::cell_server
