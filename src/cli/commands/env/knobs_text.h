#pragma once

#include <string>
#include <vector>

#include "knobs/catalogue.h"

namespace diapason::cli {

// Which library's reading of a variable is shown; version 0 and no library: both, as they are now.
struct KnobView {
  bool library_given = false;
  Library library = Library::kNccl;
  int version = 0;
  bool present = false;  // tables show the values in this environment, not those it takes
};

// Everything about one variable, for a person.
std::string KnobEntry(const knobs::Knob& knob, const KnobView& view);
// A line per variable, by group.
std::string KnobTables(const std::vector<const knobs::Knob*>& knobs, const KnobView& view);
std::string KnobMarkdown(const std::vector<const knobs::Knob*>& knobs, const KnobView& view);
std::string KnobJson(const std::vector<const knobs::Knob*>& knobs, const KnobView& view);

}  // namespace diapason::cli
