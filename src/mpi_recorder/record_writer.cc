#include "mpi_recorder/record_writer.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex_lock.h"
#include "base/text.h"
#include "journal/writer.h"

namespace diapason::mpi_recorder {
namespace {

using mpi_record::BlockHead;
using mpi_record::BlockKind;
using mpi_record::CallRecord;
using mpi_record::CommBlock;

constexpr auto kPollInterval = std::chrono::milliseconds(10);
constexpr size_t kCallsPerBlock = 4096;
constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr size_t kMostSites = 4096;
constexpr size_t kMostWaitingComms = 65536;
constexpr size_t kLongestName = 256;

struct SiteSearch {
  uintptr_t address;
  std::string text;
};

// The name is copied here, where the loader keeps the object from being unloaded.
int SeeObject(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<SiteSearch*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t from = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search->address < from ||
        search->address >= from + segment.p_memsz) {
      continue;
    }
    const char* slash = std::strrchr(object->dlpi_name, '/');
    const std::string name = slash != nullptr ? slash + 1 : object->dlpi_name;
    // The program itself has no name here.
    search->text = Format("{}+0x{:x}", name.empty() ? program_invocation_short_name : name.c_str(),
                          search->address - object->dlpi_addr);
    return 1;
  }
  return 0;
}

}  // namespace

std::string SiteText(uint64_t address) {
  SiteSearch search{static_cast<uintptr_t>(address), ""};
  dl_iterate_phdr(SeeObject, &search);
  return search.text;
}

Result<std::unique_ptr<RecordWriter>> RecordWriter::Open(const Options& options) {
  Result<journal::OwnFile> file = journal::OpenOwnFile(options.path, options.shared);
  if (!file.ok()) return IoError("cannot write the recording " + file.status().message());
  std::unique_ptr<RecordWriter> writer(
      new RecordWriter(std::move(file.value().descriptor), file.value().path, options));
  const Status started = writer->thread_.Start("diapason-mpi");
  if (!started.ok()) return IoError("cannot start the recorder's thread: " + started.message());
  return writer;
}

RecordWriter::RecordWriter(Descriptor file, std::string path, const Options& options)
    : path_(std::move(path)),
      limit_(options.limit),
      file_(std::move(file)),
      ring_(options.records),
      base_ticks_(TickClock::Get().Now()),
      base_ns_(WallTimeNs()),
      thread_(kPollInterval, [this](bool last) { Drain(last); }) {
  std::memcpy(head_.magic, mpi_record::kMagic, sizeof(head_.magic));
  head_.version = mpi_record::kVersion;
  head_.byte_order = mpi_record::kByteOrder;
  head_.head_bytes = sizeof(head_);
  head_.call_bytes = sizeof(CallRecord);
  head_.pid = static_cast<uint32_t>(getpid());
  head_.calls_known = static_cast<uint32_t>(kMpiCallCount);
  head_.loaded_ns = options.loaded_ns;
  buffer_.assign(sizeof(head_), '\0');  // WriteHead() fills it
  AppendBlock(BlockKind::kProcess, nullptr, 0, options.process);
}

RecordWriter::~RecordWriter() { Stop(); }

void RecordWriter::AddCommunicator(const CommBlock& comm, const std::string& name) {
  if (!Mine()) return;
  std::string payload(reinterpret_cast<const char*>(&comm), sizeof(comm));
  payload += name.substr(0, kLongestName);
  const MutexLock lock(thread_.mutex());
  if (comms_.size() >= kMostWaitingComms) return;
  comms_.push_back(std::move(payload));
  ++comms_added_;
}

void RecordWriter::MarkInit() { init_ns_.store(WallTimeNs(), std::memory_order_relaxed); }
void RecordWriter::MarkFinalize() { finalize_ns_.store(WallTimeNs(), std::memory_order_relaxed); }

bool RecordWriter::Flush(std::chrono::milliseconds limit) {
  if (!Mine()) return false;
  const uint64_t wanted = ring_.pushed();
  uint64_t wanted_comms = 0;
  {
    const MutexLock lock(thread_.mutex());
    wanted_comms = comms_added_;
  }
  const bool reached =
      thread_.Flush(limit, [&] { return drained_ >= wanted && comms_drained_ >= wanted_comms; });
  return reached && failure().empty();
}

void RecordWriter::Stop() { thread_.Stop(); }

std::string RecordWriter::failure() {
  // In a forked child the lock may be held by a thread that does not exist there.
  if (!Mine()) return "";
  const MutexLock lock(thread_.mutex());
  return failure_;
}

void RecordWriter::Drain(bool last) {
  if (broken_) return;
  head_.ended = last ? 1 : 0;
  try {
    WriteAdded();
  } catch (...) {
    Fail(ENOMEM);  // what the file has is all there is
  }
}

void RecordWriter::WriteAdded() {
  // A communicator's block is queued before its first record is pushed.
  const uint64_t pushed = ring_.pushed();
  std::vector<std::string> comms;
  {
    const MutexLock lock(thread_.mutex());
    comms.swap(comms_);
    comms_taken_ += comms.size();
  }
  for (const std::string& payload : comms) {
    AppendBlock(BlockKind::kCommunicator, nullptr, 0, payload);
  }
  CallRecord record;
  while (popped_ < pushed && ring_.Pop(&record)) {
    ++popped_;
    Count(record);
  }
  AppendCalls();
  WriteOut();
  WriteHead();
  const MutexLock lock(thread_.mutex());
  drained_ = popped_;
  comms_drained_ = comms_taken_;
}

// From ticks to nanoseconds, into the totals, and to the others that go into one block.
void RecordWriter::Count(const CallRecord& record) {
  const TickClock& clock = TickClock::Get();
  CallRecord timed = record;
  timed.start_ns =
      base_ns_ + static_cast<uint64_t>(clock.Seconds(record.start_ns - base_ticks_) * 1e9);
  timed.duration_ns = static_cast<uint64_t>(clock.Seconds(record.duration_ns) * 1e9);
  mpi_record::CallTotals& totals = head_.totals[record.call];
  ++totals.calls;
  totals.ns += timed.duration_ns;
  if (record.communicator == 0) return;  // of a communicator that is not known: only counted
  if (record.site != 0 && sites_.size() < kMostSites && sites_.insert(record.site).second) {
    AppendSite(record.site);
  }
  calls_.push_back(timed);
  if (calls_.size() >= kCallsPerBlock) AppendCalls();
}

void RecordWriter::AppendSite(uint64_t address) {
  AppendBlock(BlockKind::kSite, &address, sizeof(address), SiteText(address));
}

void RecordWriter::AppendCalls() {
  if (calls_.empty()) return;
  const std::string_view bytes(reinterpret_cast<const char*>(calls_.data()),
                               calls_.size() * sizeof(CallRecord));
  if (!AppendBlock(BlockKind::kCalls, nullptr, 0, bytes)) head_.over_limit += calls_.size();
  calls_.clear();
}

bool RecordWriter::AppendBlock(BlockKind kind, const void* first, size_t first_bytes,
                               std::string_view rest) {
  const BlockHead head{static_cast<uint32_t>(kind),
                       static_cast<uint32_t>(first_bytes + rest.size())};
  if (broken_ || written_ + buffer_.size() + sizeof(head) + head.bytes > limit_) return false;
  buffer_.append(reinterpret_cast<const char*>(&head), sizeof(head));
  if (first_bytes > 0) buffer_.append(static_cast<const char*>(first), first_bytes);
  buffer_.append(rest);
  if (buffer_.size() >= kBufferBytes) WriteOut();
  return true;
}

void RecordWriter::WriteOut() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !broken_) {
    const ssize_t written =
        ::pwrite(file_.get(), rest.data(), rest.size(), static_cast<off_t>(written_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      Fail(errno);
      break;
    }
    written_ += static_cast<uint64_t>(written);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void RecordWriter::WriteHead() {
  if (broken_) return;
  head_.init_ns = init_ns_.load(std::memory_order_relaxed);
  head_.finalize_ns = finalize_ns_.load(std::memory_order_relaxed);
  head_.dropped = dropped_.load(std::memory_order_relaxed);
  head_.written_ns = WallTimeNs();
  const ssize_t written = ::pwrite(file_.get(), &head_, sizeof(head_), 0);
  if (written < 0 && errno != EINTR) Fail(errno);
}

void RecordWriter::Fail(int error) {
  broken_ = true;
  const MutexLock lock(thread_.mutex());
  failure_ = Format("cannot write the recording '{}': {}", path_, ErrnoText(error));
}

}  // namespace diapason::mpi_recorder
