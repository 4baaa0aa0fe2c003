#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dataset/import.h"

// Records of collectives that other programs write: dumps of NCCL Inspector, traces of PyTorch's
// profiler. Every input may be cut or damaged: what can be read is read, the rest is counted.
namespace diapason::traces {

// A collective of one rank as NCCL Inspector dumped it.
struct InspectorCall {
  std::string communicator;  // its id
  int rank = -1;
  int ranks = 0;
  int nodes = 1;
  std::string collective;  // "allreduce"
  uint64_t sequence = 0;   // counts per communicator and function
  uint64_t bytes = 0;      // as nccl-tests counts: the larger buffer
  double seconds = 0;
  bool gpu_time = false;  // by the GPU's clock, else by the host's
  std::string ran;        // "ring/ll" in lower case; "" before format 4.2
  uint64_t start_us = 0;  // of a verbose dump; 0: not said
};

// The content of one dump: JSON lines of the formats 4.0 to 4.3. From 4.3 on the header and the
// metadata stand in the line that opens a dump only, and hold for the lines below it.
struct InspectorDump {
  std::string format;  // "v4.2"; "" if the file does not say
  std::string host;
  double started = 0;  // the first dump, seconds since 1970
  std::vector<InspectorCall> calls;
  size_t point_to_point = 0;  // records of send and receive
  size_t bad_lines = 0;
  int first_bad_line = 0;
  std::string first_bad_why;
  uint64_t dropped = 0;  // records that the program overwrote or could not keep
  uint64_t missing = 0;  // records that a dump of format 4.3 announced and the file lacks
};

// Whether a text looks like a dump, by its first line.
bool IsInspectorDump(std::string_view text);
InspectorDump ParseInspector(std::string_view text);

// The dumps of one job together. The time of a call is that of its slowest rank: a call counts if
// every rank of its communicator that has a dump recorded it. What Inspector recorded is the
// library's own choice.
class InspectorImport {
 public:
  InspectorImport();
  ~InspectorImport();
  InspectorImport(const InspectorImport&) = delete;
  InspectorImport& operator=(const InspectorImport&) = delete;

  void Add(std::string_view text, const std::string& name);
  // Once, at the end. One run; an error if no call has a time.
  Result<dataset::Import> Finish();
  // By point: what ran. Valid after Finish.
  const std::map<dataset::Point, std::vector<std::string>>& ran() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace diapason::traces
