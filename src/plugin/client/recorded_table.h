#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "domain/vocabulary.h"
#include "journal/reader.h"
#include "plugin/client/plugin_client.h"

namespace diapason::client {

// A cost table as the library passed it for one call.
struct RecordedTable {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  Shape shape;  // of the communicator; zeros if it was not recorded
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

// The tables of a journal, one per collective and size: the last one recorded.
std::vector<RecordedTable> TablesOf(const journal::JournalContents& journal);
std::string TablesText(const std::vector<RecordedTable>& tables, Library library);

// The table for a call: same collective, nearest size. nullptr: no table of this collective.
const RecordedTable* Nearest(const std::vector<RecordedTable>& tables, Collective collective,
                             uint64_t bytes);

// For use without a recording: every pair that the collective supports on some machine, all at the
// same cost.
CostTableArgs EveryPair(Collective collective);

}  // namespace diapason::client
