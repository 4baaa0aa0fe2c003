#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "domain/finding.h"
#include "logs/facts.h"

namespace diapason::logs {

// Reads logs of NCCL and RCCL, output of nccl-tests, dumps of proxies and of PyTorch's flight
// recorder (JSON), topology and graph files into `facts`. A path is a file, a folder (its files,
// not those of folders in it) or "-" for standard input. Memory does not grow with the size of the
// logs. A file that is named twice is read once. A path that cannot be read, or is no log, is an
// error; files that are no logs are left out and named in `warnings` where they stand in a folder
// or beside others that are. So are the folders of a folder that holds nothing else.
Status ReadLogs(const std::vector<std::string>& paths, LogFacts* facts,
                std::vector<std::string>* warnings);

// The same for a text that is in memory already, as one file of that name.
Status ReadLogText(std::string_view text, const std::string& name, LogFacts* facts);

}  // namespace diapason::logs
