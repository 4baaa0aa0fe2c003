// Merging two stores, and the integrity check.
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "dataset/sqlite.h"
#include "dataset/statements.h"
#include "dataset/store.h"

namespace diapason::dataset {
namespace {

// A key that compares equal for samples without a time, too.
auto KeyOf(const Sample& sample) {
  return std::make_tuple(sample.point, sample.round,
                         std::isnan(sample.seconds) ? -1.0 : sample.seconds, sample.coarse,
                         sample.iterations, sample.wrong, sample.outcome, sample.note, sample.at);
}

std::vector<WholeRun> ByRun(StoreContents contents) {
  std::vector<WholeRun> whole(contents.runs.size());
  for (size_t i = 0; i < whole.size(); ++i) whole[i].run = std::move(contents.runs[i]);
  for (StoredSample& record : contents.records) {
    whole[record.run].samples.push_back(std::move(record.sample));
  }
  return whole;
}

}  // namespace

Status SampleStore::MergeRun(const WholeRun& theirs, const WholeRun* mine, size_t* came) {
  if (mine == nullptr) {
    ASSIGN_OR_RETURN(const int64_t key, InsertRun(theirs.run));
    *came += theirs.samples.size();
    return InsertSamples(key, theirs.samples);
  }
  // Already here: one may be a copy made while the run was in progress.
  std::multiset<decltype(KeyOf(Sample{}))> keys;
  for (const Sample& sample : mine->samples) keys.insert(KeyOf(sample));
  std::vector<Sample> missing;
  for (const Sample& sample : theirs.samples) {
    const auto found = keys.find(KeyOf(sample));
    if (found == keys.end()) {
      missing.push_back(sample);
    } else {
      keys.erase(found);
    }
  }
  *came += missing.size();
  ASSIGN_OR_RETURN(const int64_t key, RunKey(theirs.run.id));
  RETURN_IF_ERROR(InsertSamples(key, missing));
  if (mine->run.state == SampleRun::State::kDone || theirs.run.state == SampleRun::State::kRunning)
    return {};
  return statements_->end_run.Bind(static_cast<int>(theirs.run.state)).Bind(key).Run();
}

Result<size_t> SampleStore::Merge(const std::string& path) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  ASSIGN_OR_RETURN(std::unique_ptr<SampleStore> other, Open(path, Access::kRead));
  ASSIGN_OR_RETURN(StoreContents theirs, other->Read());
  other.reset();
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(StoreContents mine, ReadRows({}));
  const std::vector<WholeRun> here = ByRun(std::move(mine));
  std::map<std::string, const WholeRun*> known;
  for (const WholeRun& whole : here) known[whole.run.id] = &whole;
  size_t came = 0;
  for (const WholeRun& whole : ByRun(std::move(theirs))) {
    const auto found = known.find(whole.run.id);
    RETURN_IF_ERROR(MergeRun(whole, found == known.end() ? nullptr : found->second, &came));
  }
  RETURN_IF_ERROR(transaction.Commit());
  return came;
}

Status SampleStore::CheckIntegrity() {
  ASSIGN_OR_RETURN(Statement check,
                   Statement::Prepare(database_, path_, "PRAGMA integrity_check(3)"));
  std::string found;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, check.Step());
    if (!row) break;
    const std::string line = check.Text(0);
    if (line == "ok") continue;
    found += (found.empty() ? "" : "; ") + line;
  }
  ASSIGN_OR_RETURN(Statement edges,
                   Statement::Prepare(database_, path_, "PRAGMA foreign_key_check"));
  ASSIGN_OR_RETURN(const bool lost, edges.Step());
  if (lost) found += "rows that refer to rows which are not there";
  if (found.empty()) return {};
  return Invalid("store '" + path_ + "' is damaged (" + found +
                 "): take a copy of it from before; `sqlite3 " + path_ +
                 " .recover` saves what can be read");
}

}  // namespace diapason::dataset
