#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "dataset/import.h"

namespace diapason::dataset {

// The start of a journal of the plugin.
inline constexpr std::string_view kJournalMark = "{\"type\":\"journal\"";

// Imports the journals of one job together: the time of a call is that of its slowest rank, so all
// ranks' journals are needed. Each communicator becomes a run. Its samples are the GPU times of the
// calls that every journal has timed, with the configuration that ran; a call without a wanted
// configuration is the library's own choice. For contexts without timed calls, the agreed rewards
// are used. Warm-up calls are ignored.
class JournalImport {
 public:
  // More samples of one point are thinned out evenly.
  static constexpr size_t kMostSamples = 1000;

  explicit JournalImport(ImportOptions options);
  ~JournalImport();
  JournalImport(const JournalImport&) = delete;
  JournalImport& operator=(const JournalImport&) = delete;

  Status Add(std::string_view text, const std::string& name);
  // Once, at the end.
  Result<Import> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace diapason::dataset
