#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "logs/place.h"
#include "messages/catalogue.h"

namespace diapason::logs {

// Who wrote a line, as far as the line or its surroundings say.
struct Writer {
  int64_t rank = -1;
  std::string name;  // "rank 3 (host:pid)", "rank 3", "host"; "" if unknown
};

// The occurrences of one kind of message.
struct Trouble {
  uint64_t count = 0;
  std::vector<SourceLine> places;   // the first few that differ in more than numbers
  std::vector<std::string> shapes;  // their texts without numbers
  std::vector<std::string> sayers;  // the first few
  uint64_t sayers_left_out = 0;
  int64_t rank = -1;    // of the first one
  std::string time;     // of the first one, as printed; "" if there is none
  std::string message;  // the first one, without what stands before it
};

struct Troubles {
  std::vector<Trouble> kinds;  // as messages::Catalogue::BuiltIn().messages()
  Trouble unknown_warnings;    // of the library, at level WARN
  Trouble unknown_errors;      // lines of other programs that call themselves errors
  Troubles();
  void Add(size_t kind, const Spot& spot, std::string_view line, std::string_view message,
           const Writer& writer);
  bool Any() const;  // of severity error
};
void AddTo(Trouble* trouble, size_t most, const Spot& spot, std::string_view line,
           std::string_view message, const Writer& writer);

// "19:50:08" or "2025-11-15 19:50:08" near the start of a line; "" for none.
std::string TimeIn(std::string_view line);

// The rank that a line names as the one it is about: "[Rank 3]", "process rank 3 with PID"; -1 for
// none.
int64_t RankIn(std::string_view line);

}  // namespace diapason::logs
