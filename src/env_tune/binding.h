#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "journal/reader.h"

namespace diapason::env_tune {

// What a command's speed hangs on.
enum class Binds : uint8_t { kUnknown, kLatency, kBandwidth, kCpu };
std::string_view BindsName(Binds binds);  // "cannot tell", "latency", "bandwidth", "cpu"
Result<Binds> ParseBinds(std::string_view text);

struct Binding {
  Binds binds = Binds::kUnknown;
  bool stated = false;                // by the user
  std::vector<std::string> evidence;  // sentences
};

// What one run of the command shows.
struct BindingFacts {
  double wall_s = 0;
  double cpu_s = 0;
  int cpus = 0;                                  // that it may use
  std::vector<std::pair<double, double>> sizes;  // of messages: bytes, seconds (0: not known)
  std::string sizes_from;                        // "the journal", "the benchmark"
};

// CPU: the process tree keeps nine tenths of the CPUs it may use busy. Latency or bandwidth, from
// the sizes of messages: by how their time grows with their size where times are known, else by the
// sizes alone. Where neither tells, so does this.
Binding FindBinding(const BindingFacts& facts);

// The messages in a journal: for every size its time in all; where the times were not journalled,
// its number of calls counts instead of seconds.
void AddJournalSizes(const journal::JournalContents& contents, BindingFacts* facts);

}  // namespace diapason::env_tune
