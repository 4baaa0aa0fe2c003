#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/finding.h"
#include "logs/place.h"

namespace diapason::logs {

// An error message: how to recognise it and what it means.
struct TroubleKind {
  std::string_view id;      // of the finding
  std::string_view needle;  // a part of the message
  Severity severity;
  bool in_info;  // lines of level INFO and of other programs count too
  std::string_view title;
  std::string_view action;
};

// In the order of matching: more specific ones first.
const std::vector<TroubleKind>& TroubleKinds();

// The occurrences of one kind.
struct Trouble {
  uint64_t count = 0;
  std::vector<SourceLine> places;   // the first few that differ in more than numbers
  std::vector<std::string> shapes;  // their texts without numbers
  std::vector<std::string> sayers;  // ranks or processes; the first few
  uint64_t sayers_left_out = 0;
};

struct Troubles {
  std::vector<Trouble> kinds;  // as TroubleKinds(), plus one for unknown warnings
  Troubles();
  // The kind of a message; -1 for none. `warning`: it has level WARN.
  static int Classify(std::string_view message, bool warning);
  // Fast check whether a line of another program may be of a kind.
  void Add(size_t kind, const Spot& spot, std::string_view line, std::string_view message,
           const std::string& sayer);
  bool Any() const;  // of severity error
  size_t Other() const { return kinds.size() - 1; }
};

// The meaning of the number after "status=" of a failed InfiniBand work request; "" if unknown.
std::string_view IbStatusText(int64_t status);

}  // namespace diapason::logs
