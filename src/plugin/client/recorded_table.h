#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "domain/vocabulary.h"
#include "journal/reader.h"
#include "plugin/client/plugin_client.h"

namespace diapason::client {

// A cost table as a library handed it over for one call.
struct RecordedTable {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  Shape shape;  // of the communicator; zeros where that is not recorded
  CostTableArgs cost;
};

// Reads tables from a journal written with DIAPASON_JOURNAL_TABLES=1, or from text as
// `diapason journal show --tables` prints it:
//
//   # collective,bytes,algorithm,ll,ll128,simple
//   allreduce,4096,tree,12.5,-1,31.25
//
// One line per algorithm; microseconds, -1 where the library does not offer the pair.
Result<std::vector<RecordedTable>> ReadTables(const std::string& path, Library library);

// The tables of a journal, one for each collective and size: the last one recorded.
std::vector<RecordedTable> TablesOf(const journal::JournalContents& journal);
std::string TablesText(const std::vector<RecordedTable>& tables, Library library);

// The table for a call: the same collective, the nearest size. nullptr without any.
const RecordedTable* Nearest(const std::vector<RecordedTable>& tables, Collective collective,
                             uint64_t bytes);

// Without a recording: every pair that the collective can run on some machine is on offer, at one
// price.
CostTableArgs EveryPair(Collective collective);

}  // namespace diapason::client
