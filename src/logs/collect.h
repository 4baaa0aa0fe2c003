#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "logs/cursor.h"
#include "logs/facts.h"
#include "logs/line.h"
#include "messages/matcher.h"

namespace diapason::logs {

// Parses logs line by line into LogFacts. A line without relevant content costs a search for its
// end and for a few words, and no allocation.
class Collector {
 public:
  explicit Collector(LogFacts* facts);

  void BeginFile(uint32_t file, std::string_view name);
  // Whole lines, each with its line feed (the last line of a file may lack it).
  void Lines(std::string_view block);
  // The first part of a line that is too long; the rest is not parsed.
  void LongLine(std::string_view start);
  void EndFile();
  // Called after the last file: evaluates what needs all lines.
  void Finish();

 private:
  void Line(std::string_view line, bool noted);
  void OtherLine(std::string_view line, bool noted);
  void Library(std::string_view line, size_t at);
  void Message(std::string_view line, const LibraryLine& parsed);
  void Warning(std::string_view line, const LibraryLine& parsed, uint32_t process);
  bool Information(std::string_view line, std::string_view message, uint32_t process);
  void Unknown(std::string_view line, std::string_view message, uint32_t process);
  Writer WriterOf(uint32_t process) const;

  // Lines of other programs (collect_other.cc).
  Writer WriterOf(std::string_view line, const Label& label) const;
  bool ProxyDump(std::string_view line, std::string_view rest);
  void FailureLine(std::string_view rest);
  bool TracebackLine(std::string_view rest);
  void Meaning(std::string_view line, std::string_view rest, const Label& label);

  void Labelled(const Label& label);
  uint32_t ProcessOf(const LibraryLine& parsed, int64_t label_rank);
  void NameHosts();

  // Initialisation (collect_init.cc).
  enum class InitStep { kStart, kComplete, kEnd };
  struct InitLine {
    uint64_t pointer = 0;  // the communicator, in its process
    int64_t rank = 0;
    int64_t ranks = 0;
    int64_t device = -1;
    uint64_t bus_id = 0;
  };
  static std::optional<InitStep> StepOf(std::string_view message);
  bool Initialisation(std::string_view line, std::string_view message, uint32_t process);
  uint64_t CommunicatorId(Cursor cursor, uint32_t process) const;
  void StartMember(const InitLine& init, InitStep step, uint32_t communicator, uint32_t process);
  void EndMember(const InitLine& init, uint32_t process);
  bool InitTimings(std::string_view message, uint32_t process);
  uint32_t CommunicatorOf(uint64_t id, int64_t ranks, std::string_view line);
  uint32_t MemberOf(uint32_t process, uint64_t pointer, int64_t ranks);
  uint32_t NewMember(uint32_t process, uint64_t pointer, uint32_t communicator);
  CommRank* Current(uint32_t process);

  // The library's version and environment (collect_setup.cc).
  bool Version(std::string_view line, std::string_view message, uint32_t process);
  bool Plugin(std::string_view line, std::string_view message);
  bool Environment(std::string_view line, std::string_view message, uint32_t process);
  // RCCL's HDP registers, which only TRACE builds print.
  void Hdp(std::string_view line, std::string_view message);
  bool NetworkLine(std::string_view line, std::string_view message, uint32_t process);
  bool Device(std::string_view line, std::string_view message, uint32_t process);

  // Connections and operations (collect_work.cc).
  bool Channel(std::string_view line, std::string_view message, uint32_t process);
  bool Trees(std::string_view message, uint32_t process);
  bool Channels(std::string_view message, uint32_t process);
  bool Tuning(std::string_view message);
  bool Operation(std::string_view line, std::string_view message, uint32_t process);
  void Compare(uint32_t member, uint64_t signature, std::string_view line);
  void CountCall(uint32_t collective, std::string_view name, uint64_t elements, int64_t type,
                 int64_t ranks);
  void Choose(std::string_view collective, uint64_t bytes, std::string_view algorithm,
              std::string_view protocol, int64_t channels);

  struct Slot {
    uint64_t key = 0;  // communicator, opCount and index among those with the same opCount
    uint64_t op_count = 0;
    uint64_t signature = 0;
    uint32_t communicator = UINT32_MAX;
    uint32_t member = UINT32_MAX;
    Spot spot;
  };

  LogFacts* facts_;
  Spot spot_;
  const messages::Matcher& markers_;
  // A name under which a process was seen because other lines cut into its name.
  struct Alias {
    uint32_t process = 0;
    uint32_t host = 0;
    uint64_t lines = 0;
  };
  std::unordered_map<uint64_t, Alias> processes_;  // by a hash of "host:pid"
  std::unordered_map<int64_t, std::vector<uint32_t>> by_pid_;
  uint64_t last_process_hash_ = 0;
  Alias* last_process_ = nullptr;
  uint32_t file_process_ = UINT32_MAX;              // the last process that wrote into this file
  std::unordered_map<uint64_t, uint32_t> members_;  // by process and pointer
  std::unordered_map<uint64_t, uint32_t> communicators_;  // by id or, without one, by ranks
  std::unordered_map<uint64_t, uint32_t> links_;
  std::unordered_map<uint64_t, uint32_t> choices_;
  std::unordered_map<uint64_t, uint32_t> call_kinds_;
  std::unordered_map<std::string, uint32_t> variables_;
  std::vector<Slot> slots_;
  // The last choice: most lines repeat it.
  std::string last_words_[3];
  uint32_t last_ids_[3] = {kNoName, kNoName, kNoName};
  // Up to these lines, lines without a marker may belong to what stands before them.
  uint64_t look_until_ = 0;  // to any of the following
  uint64_t dump_until_ = 0;  // to a proxy dump
  uint64_t traceback_until_ = 0;
  uint64_t failure_until_ = 0;    // to a failure in torchrun's summary
  uint64_t last_error_line_ = 0;  // the line after "Last error:"
  int64_t file_rank_ = -1;        // from the name of the file
  int64_t failure_rank_ = -1;
  std::string failure_host_;
  bool in_root_failure_ = false;
  std::string frame_;  // the last frame of the present traceback
};

// A simple hash of two numbers.
inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdULL;
  x ^= x >> 32;
  return x;
}

}  // namespace diapason::logs
