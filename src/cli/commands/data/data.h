#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/check.h"
#include "dataset/import.h"
#include "dataset/store.h"

namespace diapason::cli {

// Options of the `diapason data` subcommands. Declared in data.cc, implemented in data_*.cc.

// Filter for samples; empty selects all.
struct DataFilter {
  std::string run;
  std::string collective;
  std::string library;
  std::string bytes;
  std::string kind;
  int ranks = 0;
  int nodes = 0;
  bool simulated = false;
  bool measured = false;
};
// Reads the matching samples. With a filter, runs without a matching sample are left out, and no
// match at all is an error that lists what the store contains.
Result<dataset::StoreContents> ReadStore(const std::string& path, const DataFilter& filter);

struct DataImport {
  std::vector<std::string> files;
  std::vector<std::string> iterations;
  std::vector<std::string> journals;  // of one job
  std::string store;
  std::string bytes;
  std::string kind;
  dataset::ImportOptions options;
};
Result<int> RunDataImport(const DataImport& asked);

struct DataExport {
  std::string store;
  std::string format = "csv";
  std::string tolerance = "5%";
  std::string output;
  DataFilter filter;
};
Result<int> RunDataExport(const DataExport& asked);

struct DataShow {
  std::string store;
  DataFilter filter;
  bool json = false;
  bool samples = false;
  bool all = false;
};
Result<int> RunDataShow(const DataShow& asked);

struct DataCheck {
  std::string store;
  DataFilter filter;
  bool json = false;
};
Result<int> RunDataCheck(const DataCheck& asked);

struct DataMerge {
  std::vector<std::string> stores;
  std::string output;
};
Result<int> RunDataMerge(const DataMerge& asked);

}  // namespace diapason::cli
