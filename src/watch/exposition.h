#pragma once

#include <string>
#include <string_view>

#include "watch/watcher.h"

namespace diapason::watch {

// A view in Prometheus' text format, version 0.0.4: for a file that node_exporter's textfile
// collector reads, or as the response to GET /metrics. All names start with diapason_.
std::string ExpositionOf(const WatchView& view);

// The value of a label: backslash, quote and line feed escaped, other control characters and
// invalid UTF-8 replaced.
std::string EscapeLabel(std::string_view value);

}  // namespace diapason::watch
