#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace diapason::report {

// What `diapason report` is asked for; `diapason tune` asks the same at its end.
struct ReportRequest {
  // Stores (`sweep --store`, `tune`), journals (DIAPASON_JOURNAL), and files that `data import`
  // would take, in any order: each is recognised by its content.
  std::vector<std::string> inputs;
  std::vector<std::string> policies;  // for the decision map; may be empty
  std::string output;                 // the HTML file
  std::string title;                  // "": made from what was measured
  bool doctor = true;                 // look at this machine and put its findings in
};

struct ReportMade {
  size_t bytes = 0;    // of the file
  size_t samples = 0;  // shown in it
  std::vector<std::string> warnings;
};

// Reads all inputs and writes the file, whole or not at all. An input that cannot be read is an
// error that names it. Samples of runs whose source is "verify" are the verification: the library's
// default and what was chosen, in turns, round by round. What the policies of the request do not
// run is shown as not kept, and is not in the summary's figures.
Result<ReportMade> WriteReport(const ReportRequest& request);

}  // namespace diapason::report
