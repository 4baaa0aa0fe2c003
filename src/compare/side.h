#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "compare/change.h"
#include "dataset/sample.h"
#include "dataset/store.h"

namespace diapason::compare {

// One side of a comparison: launches, and what each of them says about each call.

struct Launch {
  std::string name;    // its file, and the run in it where it has several
  double started = 0;  // seconds since 1970; 0: not known
  dataset::MachineInfo machine;
};

struct CallOfSide {
  std::vector<LaunchFigure> figures;
  std::set<std::string> ran;  // what the library chose, where a record says: "ring/ll"
  size_t failed = 0;          // samples without a time
};

struct Side {
  std::string name;  // as it was asked for
  std::vector<Launch> launches;
  std::map<dataset::Point, CallOfSide> calls;
  std::vector<std::string> notes;  // for the user: what was left out or assumed
  std::set<std::string> runs;      // ids, so that a run counts once
};

// Adds the runs of a store or an import. `together`: they are of one launch (the communicators of
// one job); else each run is one. A run whose id is there already is left out, with a note.
void AddRuns(const dataset::StoreContents& contents, const std::string& name, bool together,
             Side* side);

// Reads files and folders: stores, logs and JSON of nccl-tests and rccl-tests, tables and exports
// that `data import` takes, dumps of NCCL Inspector, and journals; those of one folder are of one
// job. In a folder, files of other formats are passed over, with a note; a file that is named has
// to be readable. An error also where nothing has a time.
Result<Side> ReadSide(const std::vector<std::string>& paths);

}  // namespace diapason::compare
