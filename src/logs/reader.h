#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "domain/finding.h"
#include "logs/facts.h"

namespace diapason::logs {

// Reads logs of NCCL and RCCL, output of nccl-tests, dumps of proxies and of PyTorch's flight
// recorder (JSON or pickle), topology and graph files into `facts`. A path is a file, a folder (its
// files, not recursive) or "-" for standard input. Memory does not grow with the size of the logs.
// A file named twice is read once. A path that cannot be read or is not a log is an error; a file
// in a folder, or beside other logs, that is not a log is skipped and named in `warnings`. So are
// the subfolders of a folder without files.
Status ReadLogs(const std::vector<std::string>& paths, LogFacts* facts,
                std::vector<std::string>* warnings);

// The same for a text in memory, as one file of that name.
Status ReadLogText(std::string_view text, const std::string& name, LogFacts* facts);

}  // namespace diapason::logs
