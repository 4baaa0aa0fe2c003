#pragma once

#include <string>
#include <vector>

#include "knobs/catalogue.h"

namespace diapason::cli {

// The library and version for which a variable is shown; version 0 and no library: both libraries
// in their newest versions.
struct KnobView {
  bool library_given = false;
  Library library = Library::kNccl;
  int version = 0;
  bool present = false;  // tables show the values in this environment instead of the accepted ones
};

// All details of one variable as text.
std::string KnobEntry(const knobs::Knob& knob, const KnobView& view);
// One line per variable, by group.
std::string KnobTables(const std::vector<const knobs::Knob*>& knobs, const KnobView& view);
std::string KnobMarkdown(const std::vector<const knobs::Knob*>& knobs, const KnobView& view);
std::string KnobJson(const std::vector<const knobs::Knob*>& knobs, const KnobView& view);

}  // namespace diapason::cli
