#include "journal/writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/host_name.h"
#include "base/mutex_lock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/version.h"

namespace diapason::journal {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr auto kPollInterval = std::chrono::milliseconds(20);

// Why an existing file cannot become the journal; "" if it can.
std::string WhyNot(const struct stat& info, bool shared) {
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_nlink > 1) return "it has a second name elsewhere";
  if (!shared && info.st_uid != ::geteuid()) return "it belongs to another user";
  return "";
}

constexpr char kInUse[] = "another process is writing it";

// Opens the file for this process alone. An error says only the reason; kInUse: another process has
// it.
Result<Descriptor> OpenAlone(const std::string& path, bool shared) {
  // Not O_TRUNC: a file that another process is writing must not be truncated before the lock is
  // taken.
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                         shared ? 0666 : 0600));
  if (!file.open()) return IoError(errno == ELOOP ? "it is a symbolic link" : ErrnoText(errno));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return IoError(ErrnoText(errno));
  if (const std::string reason = WhyNot(info, shared); !reason.empty()) return IoError(reason);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return IoError(errno == EWOULDBLOCK ? kInUse : ErrnoText(errno));
  }
  // Before the first line: the file may be an old one.
  const bool open_to_others = (info.st_mode & 077) != 0;
  if (!shared && open_to_others && ::fchmod(file.get(), 0600) != 0) {
    return IoError("it cannot be closed to others: " + ErrnoText(errno));
  }
  if (::ftruncate(file.get(), 0) != 0) return IoError(ErrnoText(errno));
  return file;
}

}  // namespace

std::string ExpandPath(const std::string& pattern, const std::string& pid) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next != 'h' && next != 'p' && next != '%') {
      path += pattern[i];
      continue;
    }
    path += next == 'h' ? HostName() : next == 'p' ? pid : "%";
    ++i;
  }
  return path;
}

Result<OwnFile> OpenOwnFile(const std::string& pattern, bool shared) {
  std::string path = ExpandPath(pattern, std::to_string(getpid()));
  Result<Descriptor> file = OpenAlone(path, shared);
  if (!file.ok() && file.status().message() == kInUse) {
    path += Format(".{}", static_cast<int>(getpid()));
    file = OpenAlone(path, shared);
  }
  if (!file.ok()) return file.status().WithContext("'" + path + "'");
  return OwnFile{std::move(file).value(), std::move(path)};
}

Result<std::unique_ptr<Journal>> Journal::Open(const Options& options) {
  Result<OwnFile> file = OpenOwnFile(options.path, options.shared);
  if (!file.ok()) return IoError("cannot write the journal " + file.status().message());
  std::unique_ptr<Journal> journal(
      new Journal(std::move(file.value().descriptor), file.value().path, options));
  const Status started = journal->thread_.Start("diapason-jrnl");
  if (!started.ok()) return IoError("cannot start the journal's thread: " + started.message());
  return journal;
}

Journal::Journal(Descriptor file, std::string path, const Options& options)
    : path_(std::move(path)),
      limit_(options.limit),
      file_(std::move(file)),
      ring_(options.records),
      thread_(kPollInterval, [this](bool last) { Drain(last); }) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  ++headlines_added_;
  headlines_.push_back(
      Format("{{\"type\":\"journal\",\"version\":{},\"diapason\":\"{}\",\"host\":{},\"pid\":{},"
             "\"time_ns\":{}}}",
             kFormatVersion, kVersion, JsonBytes(HostName()), static_cast<int>(getpid()),
             static_cast<long long>(now.tv_sec) * 1000000000 + now.tv_nsec));
}

Journal::~Journal() { Stop(); }

void Journal::AddCommunicator(const JournalComm& communicator) {
  if (!Mine()) return;  // see failure()
  const MutexLock lock(thread_.mutex());
  if (libraries_.size() <= communicator.number) libraries_.resize(communicator.number + 1);
  libraries_[communicator.number] = communicator.library;
  headlines_.push_back(CommunicatorLine(communicator));
  ++headlines_added_;
}

bool Journal::Flush(std::chrono::milliseconds limit) {
  if (!Mine()) return false;
  const uint64_t wanted = ring_.pushed();
  uint64_t wanted_headlines = 0;
  {
    const MutexLock lock(thread_.mutex());
    wanted_headlines = headlines_added_;
  }
  const bool reached = thread_.Flush(
      limit, [&] { return drained_ >= wanted && headlines_drained_ >= wanted_headlines; });
  return reached && failure().empty();
}

void Journal::Stop() { thread_.Stop(); }

std::string Journal::failure() {
  // In a forked child the lock may be held by a thread that does not exist there.
  if (!Mine()) return "";
  const MutexLock lock(thread_.mutex());
  return failure_;
}

void Journal::Drain(bool last) {
  try {
    WriteAdded();
    if (!last) return;
    Append(Format("{{\"type\":\"end\",\"dropped\":{}}}", dropped()));
    WriteBuffer();
  } catch (...) {
    // Out of memory: these records are lost. The next round may succeed.
    dropped_.fetch_add(1, std::memory_order_relaxed);
    buffer_.clear();
    NoteDrained();
  }
}

void Journal::WriteAdded() {
  // A communicator's line is queued before its first record is pushed. So read the number of
  // records first, then take the lines, and pop no more records than that. (This also bounds a
  // flush while producers are busy.)
  const uint64_t pushed = ring_.pushed();
  std::vector<std::string> headlines;
  std::vector<Library> libraries;
  {
    const MutexLock lock(thread_.mutex());
    libraries = libraries_;
    headlines.swap(headlines_);
    headlines_taken_ += headlines.size();
  }
  for (const std::string& line : headlines) Append(line);
  JournalRecord record;
  while (popped_ < pushed && ring_.Pop(&record)) {
    ++popped_;
    const Library library =
        record.communicator < libraries.size() ? libraries[record.communicator] : Library::kNccl;
    Append(RecordLine(record, library));
    if (full_) dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  const uint64_t lost = dropped();
  if (lost != dropped_written_) {
    dropped_written_ = lost;
    Append(Format("{{\"type\":\"dropped\",\"count\":{}}}", lost));
  }
  WriteBuffer();
  NoteDrained();
}

void Journal::NoteDrained() {
  const MutexLock lock(thread_.mutex());
  drained_ = popped_;
  headlines_drained_ = headlines_taken_;
}

void Journal::Append(const std::string& line) {
  if (full_) return;
  if (written_bytes_ + buffer_.size() + line.size() + 1 > limit_) {
    full_ = true;
    const MutexLock lock(thread_.mutex());
    failure_ = Format("the journal '{}' has reached its limit of {} bytes", path_, limit_);
    return;
  }
  buffer_ += line;
  buffer_ += '\n';
  if (buffer_.size() >= kBufferBytes) WriteBuffer();
}

void Journal::WriteBuffer() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      full_ = true;
      const MutexLock lock(thread_.mutex());
      failure_ = Format("cannot write the journal '{}': {}", path_, ErrnoText(errno));
      break;
    }
    written_bytes_ += static_cast<uint64_t>(written);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

}  // namespace diapason::journal
