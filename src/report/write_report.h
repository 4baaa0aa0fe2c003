#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace diapason::report {

// Request for a report, from `diapason report` and from the end of `diapason tune`.
struct ReportRequest {
  // Stores (`sweep --store`, `tune`), journals (DIAPASON_JOURNAL), and files that `data import`
  // accepts, in any order: each is recognised by its content.
  std::vector<std::string> inputs;
  std::vector<std::string> policies;  // for the decision map; may be empty
  std::string output;                 // the HTML file
  std::string title;                  // "": made from the measurements
  // The result in sentences, without a full stop at the end; "": made from the measurements.
  std::string headline;
  bool doctor = true;  // include the findings of `doctor` about this machine
};

struct ReportMade {
  size_t bytes = 0;      // size of the file
  size_t samples = 0;    // samples shown in it
  std::string headline;  // the sentences below the page's title
  std::vector<std::string> warnings;
};

// Reads all inputs and writes the file atomically. An input that cannot be read is an error that
// names it. Samples of runs whose source is "verify" are the verification: the library's default
// and the chosen configuration, alternating, round by round. Choices that the requested policies do
// not contain are shown as not kept, and are left out of the figures of the summary.
Result<ReportMade> WriteReport(const ReportRequest& request);

}  // namespace diapason::report
