#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "domain/finding.h"
#include "messages/matcher.h"

namespace diapason::messages {

// What kind of cause a message is, from the most causal to what only follows from others.
enum class Cause : uint8_t {
  kResource,  // memory, limits, disk of one host
  kDeath,     // a process was ended from outside
  kProgram,   // the program, its settings or its versions
  kHardware,  // GPUs, their links and drivers
  kNetwork,
  kCascade,  // follows from another fault: a peer that left, an abort, a time-out
  kBenign,   // looks like trouble and is none
};
std::string_view CauseName(Cause cause);  // "resource", "death", ...

// One kind of message: how to recognise it and what it means. tables: src/messages/*.toml,
// described in FORMAT.md.
struct Message {
  std::string id;  // of the finding; several messages may share it
  Cause cause = Cause::kProgram;
  Severity severity = Severity::kError;
  int weight = 0;          // of two findings, the one with the higher weight is the cause
  bool only_warn = false;  // counts only as a warning of the library itself
  bool quote = false;      // the title is followed by the line
  bool fallback = false;   // loses to every other message that the line fits
  std::vector<std::string> find;
  std::vector<std::string> with;
  std::vector<std::string> without;
  std::string title;
  std::string action;
  std::vector<std::string> examples;
};

// The known messages. Immutable after construction.
class Catalogue {
 public:
  // The compiled-in tables.
  static const Catalogue& BuiltIn();
  // Tables with their names, as (name, text). Fails at the first error, with its place.
  static Result<Catalogue> Parse(const std::vector<std::pair<std::string, std::string>>& files);

  const std::vector<Message>& messages() const { return messages_; }
  // All texts of all messages, for a search that looks for other words at the same time.
  const std::vector<std::string>& texts() const { return texts_; }

  // The number of the message that `line` is; -1 for none. `warning`: the library wrote it at level
  // WARN, or as its last error. Of several, the one with the highest weight.
  int Classify(std::string_view line, bool warning) const;

 private:
  std::vector<Message> messages_;
  std::vector<std::string> texts_;
  std::vector<std::vector<uint32_t>> owners_;  // of texts_: the messages that look for it
  std::vector<Matcher> matcher_;               // one, after Parse
};

}  // namespace diapason::messages
