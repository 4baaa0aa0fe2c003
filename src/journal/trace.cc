#include "journal/trace.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/schedule.h"
#include "journal/joined.h"
#include "journal/match.h"

namespace diapason::journal {
namespace {

constexpr size_t kBufferBytes = 1 << 16;
constexpr uint64_t kDayNs = uint64_t{86400} * 1000000000;

std::string Call(const JournalRecord& record) {
  return std::string(CollectiveName(static_cast<Collective>(record.collective))) + " " +
         FormatBytes(record.bytes);
}

// A process is named by its rank in its largest communicator.
std::string ProcessName(const std::string& name, const JournalContents& contents, int* rank) {
  int64_t largest = 0;
  for (const JournalComm& communicator : contents.communicators) {
    if (communicator.rank >= 0) largest = std::max(largest, communicator.shape.ranks);
  }
  std::vector<int> ranks;
  for (const JournalComm& communicator : contents.communicators) {
    if (communicator.rank >= 0 && communicator.shape.ranks == largest) {
      ranks.push_back(communicator.rank);
    }
  }
  *rank = ranks.empty() ? -1 : *std::min_element(ranks.begin(), ranks.end());
  return Format("{}, {}, {}", ranks.empty() ? name : RanksText(ranks), contents.host, contents.pid);
}

// The offset from the GPU's clock to the host's; modulo 2^64.
uint64_t GpuOffset(const JournalContents& contents) {
  bool any = false;
  int64_t smallest = 0;
  for (const JournalRecord& record : contents.records) {
    if (record.kind != RecordKind::kRan || record.seconds <= 0) continue;
    const uint64_t stop = record.gpu_start_ns + static_cast<uint64_t>(record.seconds * 1e9);
    const auto difference = static_cast<int64_t>(record.time_ns - stop);
    if (!any || difference < smallest) smallest = difference;
    any = true;
  }
  return static_cast<uint64_t>(smallest);
}

}  // namespace

// Threads: 2 n has the decisions of communicator n, 2 n + 1 its runs on the GPU.
class TraceWriter::Journal {
 public:
  Journal(TraceWriter* writer, const JournalContents& contents)
      : writer_(*writer),
        contents_(contents),
        partners_(JoinRuns(contents)),
        offset_(GpuOffset(contents)) {}

  Status Write(const std::string& name) {
    int rank = -1;
    const std::string title = ProcessName(name, contents_, &rank);
    Status status = Meta("process_name", 0, "\"name\":" + JsonBytes(title));
    if (status.ok() && rank >= 0) {
      status = Meta("process_sort_index", 0, Format("\"sort_index\":{}", rank));
    }
    for (const JournalComm& communicator : contents_.communicators) {
      const std::string thread = Format("communicator {}", communicator.number) +
                                 (communicator.name.empty() ? "" : " (" + communicator.name + ")");
      if (status.ok()) status = Thread(Host(communicator.number), thread);
      if (status.ok()) status = Thread(Gpu(communicator.number), thread + ", GPU");
    }
    for (size_t i = 0; status.ok() && i < contents_.records.size(); ++i) {
      const JournalRecord& record = contents_.records[i];
      library_ = contents_.Find(record.communicator)->library;
      switch (record.kind) {
        case RecordKind::kDecision:
          status = Decision(record);
          break;
        case RecordKind::kRan:
          status = Ran(record, partners_[i]);
          break;
        case RecordKind::kBypassed:
          status = Instant(record, "bypassed: " + Call(record), "bypassed",
                           Format("\"captured\":{}", record.captured ? "true" : "false"));
          break;
        case RecordKind::kReward:
          status = Reward(record);
          break;
        case RecordKind::kStep:  // not among the records
          break;
      }
    }
    return status;
  }

 private:
  static uint64_t Host(uint32_t communicator) { return uint64_t{communicator} * 2; }
  static uint64_t Gpu(uint32_t communicator) { return uint64_t{communicator} * 2 + 1; }

  std::string Common(const char* phase, uint64_t thread, const std::string& name) const {
    return Format("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"name\":{}", phase, writer_.journals_,
                  thread, JsonBytes(name));
  }
  Status Meta(const char* what, uint64_t thread, const std::string& args) {
    return writer_.Event(Common("M", thread, what) + ",\"args\":{" + args + "}}");
  }
  Status Thread(uint64_t thread, const std::string& name) {
    RETURN_IF_ERROR(Meta("thread_name", thread, "\"name\":" + JsonBytes(name)));
    return Meta("thread_sort_index", thread, Format("\"sort_index\":{}", thread));
  }
  Status Instant(const JournalRecord& record, const std::string& name, const char* category,
                 const std::string& args) {
    return writer_.Event(Common("i", Host(record.communicator), name) +
                         Format(",\"cat\":\"{}\",\"s\":\"t\",\"ts\":{},\"args\":{{{}}}}}", category,
                                writer_.Time(record.time_ns), args));
  }
  std::string Configured(const JournalRecord& record, const Config& config) const {
    return ConfigText(library_, static_cast<Collective>(record.collective), config);
  }

  Status Decision(const JournalRecord& record) {
    std::string args = Format("\"call\":{},\"bytes\":{},\"asked\":{},\"why\":{}", record.call,
                              record.bytes, JsonBytes(Configured(record, AskedOf(record))),
                              JsonBytes(ReasonSentence(record.reason)));
    if (record.default_algorithm != kKeep) {
      const Config alone{record.default_algorithm, record.default_protocol, 0};
      args += ",\"alone\":" + JsonBytes(Configured(record, alone));
    }
    if (record.line > 0) args += Format(",\"line\":{}", record.line);
    if (record.learning) {
      args += Format(",\"epoch\":{},\"index\":{}", record.epoch, record.index);
      RETURN_IF_ERROR(Epoch(record));
    }
    if (record.captured) args += ",\"captured\":true";
    return Instant(record, Call(record) + ": " + Configured(record, AskedOf(record)), "decision",
                   args);
  }
  // Marks the first decision of an epoch as its start.
  Status Epoch(const JournalRecord& record) {
    const auto [at, fresh] = epochs_.emplace(
        std::tuple(record.communicator, record.collective, SizeBand(record.bytes)), record.epoch);
    if (!fresh && at->second == record.epoch) return {};
    at->second = record.epoch;
    return Instant(record, Format("epoch {} of {}", record.epoch, ContextText(record)), "epoch",
                   Format("\"epoch\":{}", record.epoch));
  }
  static std::string ContextText(const JournalRecord& record) {
    return std::string(CollectiveName(static_cast<Collective>(record.collective))) + " up to " +
           FormatBytes(BandLast(SizeBand(record.bytes)));
  }

  Status Ran(const JournalRecord& record, uint32_t decision) {
    const std::string name = Call(record) + ": " + Configured(record, ConfigOf(record));
    std::string args =
        Format("\"call\":{},\"sequence\":{},\"bytes\":{},\"captured\":{}", record.call,
               record.sequence, record.bytes, record.captured ? "true" : "false");
    if (decision != kNoPartner) {
      const JournalRecord& asked = contents_.records[decision];
      args += ",\"asked\":" + JsonBytes(Configured(asked, AskedOf(asked)));
      if (CompareRun(asked, record) != Obeyed::kYes) args += ",\"otherwise\":true";
    }
    if (record.seconds <= 0) return Instant(record, "ran " + name, "run", args);
    return writer_.Event(Common("X", Gpu(record.communicator), name) +
                         Format(",\"cat\":\"run\",\"ts\":{},\"dur\":{:.3f},\"args\":{{{}}}}}",
                                writer_.Time(record.gpu_start_ns + offset_), record.seconds * 1e6,
                                args));
  }

  Status Reward(const JournalRecord& record) {
    const std::string config = Configured(record, ConfigOf(record));
    RETURN_IF_ERROR(
        Instant(record, Format("reward: {}, {}", ContextText(record), config), "reward",
                Format("\"epoch\":{},\"index\":{},\"us\":{:.3f},\"samples\":{},\"skew\":{:.6g}",
                       record.epoch, record.index, record.seconds * 1e6, record.samples,
                       static_cast<double>(record.skew))));
    return writer_.Event(
        Common("C", Host(record.communicator), Format("{}, us", ContextText(record))) +
        Format(",\"id\":{},\"ts\":{},\"args\":{{{}:{:.3f}}}}}",
               JsonBytes(Format("communicator {}", record.communicator)),
               writer_.Time(record.time_ns), JsonBytes(config), record.seconds * 1e6));
  }

  TraceWriter& writer_;
  const JournalContents& contents_;
  const std::vector<uint32_t> partners_;
  const uint64_t offset_;
  Library library_ = Library::kNccl;
  std::map<std::tuple<uint32_t, uint8_t, int>, uint32_t> epochs_;
};

Status TraceWriter::Add(const std::string& name, const JournalContents& contents) {
  if (journals_++ == 0) {
    const uint64_t first = contents.started_ns != 0   ? contents.started_ns
                           : contents.records.empty() ? 0
                                                      : contents.records[0].time_ns;
    const uint64_t midnight = first - first % kDayNs;
    base_ns_ = midnight - std::min(midnight, kDayNs);
  }
  return Journal(this, contents).Write(name);
}

Status TraceWriter::Finish() {
  if (events_ == 0) buffer_ += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  buffer_ += Format("\n],\"otherData\":{{\"start_ns\":\"{}\"}}}}\n", base_ns_);
  return Flush();
}

Status TraceWriter::Event(const std::string& event) {
  buffer_ += events_++ == 0 ? "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" : ",\n";
  buffer_ += event;
  return buffer_.size() < kBufferBytes ? Status() : Flush();
}

Status TraceWriter::Flush() {
  const Status written = sink_(buffer_);
  buffer_.clear();
  return written;
}

std::string TraceWriter::Time(uint64_t time_ns) const {
  const bool before = time_ns < base_ns_;
  const uint64_t distance = before ? base_ns_ - time_ns : time_ns - base_ns_;
  return Format("{}{}.{:03}", before ? "-" : "", distance / 1000, distance % 1000);
}

}  // namespace diapason::journal
