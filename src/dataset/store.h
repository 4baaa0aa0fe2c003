#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/sample.h"

struct sqlite3;

namespace diapason::dataset {

// A sample with its run: an index into StoreContents::runs.
struct StoredSample {
  size_t run = 0;
  Sample sample;
};

struct StoreContents {
  std::vector<SampleRun> runs;
  std::vector<StoredSample> records;  // in the order of measurement, run by run
};

struct WholeRun {
  SampleRun run;
  std::vector<Sample> samples;
};

// Selects what to read; unset fields match everything.
struct Filter {
  std::string run;  // id
  std::string collective;
  std::string library;
  std::optional<int> nodes;
  std::optional<int> ranks;
  std::optional<uint64_t> bytes;
  std::optional<Point::Kind> kind;
};

// A point that a run was measuring when its process ended.
struct Unfinished {
  Point point;
  int deaths = 1;  // how often in a row
};

// All samples in one SQLite file. Several processes may write concurrently: each Add is one
// transaction, so a killed process leaves whole samples or none. The file can be copied while no
// process writes; it uses a rollback journal rather than a write-ahead log, so that it also works
// on a file system shared by several hosts, if that supports locks.
//
// Not thread-safe.
class SampleStore {
 public:
  enum class Access { kRead, kWrite };
  // kWrite creates the file if it does not exist. Fails for a file that is not a diapason store, is
  // damaged, or was written by a newer version.
  static Result<std::unique_ptr<SampleStore>> Open(const std::string& path, Access access);
  ~SampleStore();
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  // False: a run with this id exists already, and nothing was done.
  Result<bool> BeginRun(const SampleRun& run);
  Status Add(const std::string& run, std::span<const Sample> samples);
  // The same, and the point that the run measures next (null: none), in one transaction: a process
  // killed while measuring leaves both.
  Status AddAndTry(const std::string& run, std::span<const Sample> samples, const Point* next);
  // The points that the run was measuring when its process ended, once or several times in a row.
  // Counts a death for a point that is still marked. REQUIRES: no process is measuring for this
  // run.
  Result<std::vector<Unfinished>> TakeUnfinished(const std::string& run);
  // Replaces the marks of the samples' points by `samples`.
  Status Settle(const std::string& run, std::span<const Sample> samples);
  Status EndRun(const std::string& run, SampleRun::State state);
  // A run and all its samples in one transaction. False: it exists already.
  Result<bool> AddRun(const SampleRun& run, std::span<const Sample> samples);

  // Several of them in one transaction. True for those that were added.
  Result<std::vector<bool>> AddRuns(std::span<const WholeRun> runs);

  Result<std::vector<SampleRun>> Runs();
  Result<StoreContents> Read(const Filter& filter = {});
  // Adds everything of another store that is missing here, in one transaction; returns the number
  // of samples added. A run that is in both is completed.
  Result<size_t> Merge(const std::string& path);
  // Reads every page of the file. The error says what is damaged.
  Status CheckIntegrity();

  const std::string& path() const { return path_; }

 private:
  struct Statements;
  explicit SampleStore(sqlite3* database, std::string path);
  Status Start(Access access);
  // Whether the table of marks exists; creates it if `make`.
  Result<bool> UseTrying(bool make);
  Status PrepareStatements();
  Result<int64_t> MachineId(const MachineInfo& machine);
  Result<int64_t> PointId(const Point& point);
  // 0: there is none.
  Result<int64_t> RunKey(const std::string& id);
  Result<bool> AddRunInside(const SampleRun& run, std::span<const Sample> samples);
  Result<int64_t> InsertRun(const SampleRun& run);
  Status InsertSamples(int64_t run, std::span<const Sample> samples);
  static Status CheckSamples(std::span<const Sample> samples);
  Result<std::vector<Unfinished>> ReadUnfinished(int64_t run);
  // The row of a run, which must exist.
  Result<int64_t> KnownRun(const std::string& id);
  Status ReadRuns(const Filter& filter, std::vector<SampleRun>* list,
                  std::map<int64_t, size_t>* keys);
  Result<StoreContents> ReadRows(const Filter& filter);
  Status MergeRun(const WholeRun& theirs, const WholeRun* mine, size_t* came);

  sqlite3* database_;
  std::string path_;
  std::unique_ptr<Statements> statements_;
};

// "NAME=VALUE" lines, with line feeds and backslashes written as \n and \\: the stored and exported
// form of a machine's environment. Secrets are removed in both directions, because an older store
// may contain some.
std::string EnvironmentText(const std::map<std::string, std::string>& environment);
std::map<std::string, std::string> ParseEnvironmentText(const std::string& text);

}  // namespace diapason::dataset
