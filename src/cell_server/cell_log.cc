#include "cell_server/cell_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "agree/private_folder.h"
#include "agree/quiet_signal.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::cell_server {
namespace {

constexpr std::string_view kMagic = "diapason cells 1\n";
constexpr size_t kNumber = 8;
constexpr size_t kHead = 4 * kNumber;
constexpr size_t kSnapshotBatch = size_t{4} << 20U;

void PutNumber(std::string* text, uint64_t number) {
  for (unsigned i = 0; i < kNumber; ++i) {
    text->push_back(static_cast<char>((number >> (8U * i)) & 0xffU));
  }
}

uint64_t GetNumber(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = kNumber; i-- > 0;) number = (number << 8U) | static_cast<unsigned char>(bytes[i]);
  return number;
}

std::string Batch(uint64_t number, std::string_view records) {
  std::string batch;
  PutNumber(&batch, records.size());
  PutNumber(&batch, number);
  PutNumber(&batch, Fnv1a64(records));
  PutNumber(&batch, Fnv1a64(batch));
  batch += records;
  return batch;
}

void AddRecord(std::string* records, std::string_view record) {
  PutNumber(records, record.size());
  *records += record;
}

// Up to `count` bytes; fewer at the end of the file.
Result<std::string> ReadAt(int fd, uint64_t at, size_t count) {
  std::string bytes(count, '\0');
  size_t have = 0;
  while (have < count) {
    const ssize_t got =
        ::pread(fd, bytes.data() + have, count - have, static_cast<off_t>(at + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(ErrnoText(errno));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

int WriteAt(int fd, std::string_view bytes, uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t some = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return some < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<size_t>(some));
    at += static_cast<uint64_t>(some);
  }
  return 0;
}

Status ApplyRecords(std::string_view records, const CellLog::Apply& apply) {
  while (!records.empty()) {
    const uint64_t length = records.size() < kNumber ? UINT64_MAX : GetNumber(records);
    if (length > records.size() - std::min(records.size(), kNumber)) {
      return Unavailable("a record of it is longer than its batch");
    }
    RETURN_IF_ERROR(apply(records.substr(kNumber, length)));
    records.remove_prefix(kNumber + length);
  }
  return {};
}

// One batch of a file that is read from the front.
struct ReadBatch {
  std::string records;
  uint64_t bytes = 0;       // with its head; 0: the file ends here
  bool incomplete = false;  // the server died while it wrote this last batch
};

Result<ReadBatch> ReadBatchAt(int fd, uint64_t at, uint64_t size, uint64_t number) {
  ReadBatch batch;
  if (at == size) return batch;
  ASSIGN_OR_RETURN(const std::string head, ReadAt(fd, at, kHead));
  const auto damaged = [&] {
    return Unavailable(Format("it is damaged at byte {}: remove it if no job needs it", at));
  };
  if (head.size() < kHead) {
    batch.incomplete = true;
    return batch;
  }
  const std::string_view fields = std::string_view(head).substr(0, 3 * kNumber);
  if (GetNumber(std::string_view(head).substr(3 * kNumber)) != Fnv1a64(fields)) {
    // Space that was reserved and not written.
    ASSIGN_OR_RETURN(const std::string rest,
                     ReadAt(fd, at, std::min<uint64_t>(size - at, kMostBatch)));
    const bool empty = rest.find_first_not_of('\0') == std::string::npos;
    if (!empty || at + rest.size() != size) return damaged();
    batch.incomplete = true;
    return batch;
  }
  const uint64_t length = GetNumber(head);
  if (length > 2 * kMostBatch || GetNumber(fields.substr(kNumber)) != number) return damaged();
  ASSIGN_OR_RETURN(batch.records, ReadAt(fd, at + kHead, length));
  const bool last = at + kHead + length >= size;
  if (batch.records.size() < length ||
      Fnv1a64(batch.records) != GetNumber(fields.substr(2 * kNumber))) {
    if (!last) return damaged();
    batch.incomplete = true;
    return batch;
  }
  batch.bytes = kHead + length;
  return batch;
}

}  // namespace

Result<CellLog> CellLog::Open(const std::string& path, const Apply& apply) {
  CellLog log(path);
  const auto bad = [&](const Status& why) { return why.WithContext("the cells' file " + path); };
  log.file_ = Descriptor(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!log.file_.open() && errno != ENOENT) return bad(IoError(ErrnoText(errno)));
  const Status ready = log.file_.open() ? log.ReadAll(apply) : log.Create();
  if (!ready.ok()) return bad(ready);
  return log;
}

Status CellLog::Lock() const {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  return Unavailable(errno == EWOULDBLOCK ? "another server uses it" : ErrnoText(errno));
}

Status CellLog::SyncFolder() const {
  std::string folder = std::filesystem::path(path_).parent_path().string();
  if (folder.empty()) folder = ".";
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open() || ::fsync(opened.get()) != 0) return IoError(ErrnoText(errno));
  return {};
}

Status CellLog::Create() {
  file_ =
      Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  // The process's umask may have removed this user's own permissions.
  if (!file_.open() || ::fchmod(file_.get(), 0600) != 0) return IoError(ErrnoText(errno));
  RETURN_IF_ERROR(Lock());
  const agree::QuietSignal quiet(SIGXFSZ);
  if (const int error = WriteAt(file_.get(), kMagic, 0)) return IoError(ErrnoText(error));
  if (::fsync(file_.get()) != 0) return IoError(ErrnoText(errno));
  size_ = kMagic.size();
  return SyncFolder();
}

Status CellLog::ReadAll(const Apply& apply) {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) return IoError(ErrnoText(errno));
  if (const std::string wrong = agree::NotOurs(info); !wrong.empty()) return Unavailable(wrong);
  RETURN_IF_ERROR(Lock());
  const auto size = static_cast<uint64_t>(info.st_size);
  ASSIGN_OR_RETURN(const std::string magic, ReadAt(file_.get(), 0, kMagic.size()));
  if (magic != kMagic && !kMagic.starts_with(magic)) {
    return Unavailable("it is no file of cells, or of another version");
  }
  if (magic != kMagic) {  // created, and the server died before it wrote anything
    if (const int error = WriteAt(file_.get(), kMagic, 0)) return IoError(ErrnoText(error));
  }
  size_ = kMagic.size();
  while (size_ < size) {
    ASSIGN_OR_RETURN(const ReadBatch batch, ReadBatchAt(file_.get(), size_, size, number_));
    if (batch.incomplete) break;
    RETURN_IF_ERROR(ApplyRecords(batch.records, apply));
    size_ += batch.bytes;
    ++number_;
  }
  // Also what is read back from memory has to be on the disk before a rank is told.
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0 || ::fsync(file_.get()) != 0) {
    return IoError(ErrnoText(errno));
  }
  return {};
}

void CellLog::Append(std::string_view record) { AddRecord(&buffer_, record); }

Status CellLog::Commit() {
  if (buffer_.empty()) return {};
  const std::string batch = Batch(number_, buffer_);
  std::string().swap(buffer_);
  const agree::QuietSignal quiet(SIGXFSZ);
  if (const int error = WriteAt(file_.get(), batch, size_)) {
    // A later batch must not stand behind a part of this one.
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) {
      return Internal("cannot undo a write to " + path_ + ": " + ErrnoText(errno));
    }
    const std::string why = "cannot write " + path_ + ": " + ErrnoText(error);
    return error == ENOSPC || error == EFBIG || error == EDQUOT ? OutOfRoom(why) : IoError(why);
  }
  // After a failed sync the system may have dropped the data, and report success the next time.
  if (::fdatasync(file_.get()) != 0) {
    return Internal("cannot write " + path_ + " to its disk: " + ErrnoText(errno));
  }
  size_ += batch.size();
  ++number_;
  return {};
}

Status CellLog::Rewrite(
    const std::function<void(const std::function<void(std::string_view)>&)>& records) {
  CellLog fresh(path_ + ".new");
  ::unlink(fresh.path_.c_str());
  RETURN_IF_ERROR(fresh.Create());
  Status written;
  records([&](std::string_view record) {
    fresh.Append(record);
    if (written.ok() && fresh.buffered() > kSnapshotBatch) written = fresh.Commit();
  });
  if (written.ok()) written = fresh.Commit();
  if (written.ok() && ::rename(fresh.path_.c_str(), path_.c_str()) != 0) {
    written = IoError(ErrnoText(errno));
  }
  if (!written.ok()) {
    ::unlink(fresh.path_.c_str());
    return written;
  }
  file_ = std::move(fresh.file_);
  size_ = fresh.size_;
  number_ = fresh.number_;
  const Status synced = SyncFolder();
  // Without it a crash of the host could bring the old file back, which lacks what comes now.
  return synced.ok() ? synced : Internal(synced.message());
}

}  // namespace diapason::cell_server
