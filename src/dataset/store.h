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

// A sample with the run it belongs to: an index into Contents::runs.
struct StoredSample {
  size_t run = 0;
  Sample sample;
};

struct StoreContents {
  std::vector<SampleRun> runs;
  std::vector<StoredSample> records;  // in the order they were taken, run by run
};

struct WholeRun {
  SampleRun run;
  std::vector<Sample> samples;
};

// What to read; what is not set is not asked.
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

// Every sample that was ever taken, in one SQLite file. Several processes may write at once: each
// Add is one transaction, so a process that is killed leaves whole samples or none. The file can be
// copied while nobody writes; it has a rollback journal rather than a write-ahead log, so that it
// also works where several hosts share a file system that has locks.
//
// One thread at a time may use a Store.
class SampleStore {
 public:
  enum class Access { kRead, kWrite };
  // kWrite creates the file where there is none. A file that is no store of ours, is damaged, or
  // was written by a newer version is an error that says so.
  static Result<std::unique_ptr<SampleStore>> Open(const std::string& path, Access access);
  ~SampleStore();
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  // False: a run with this id is there already, and nothing was done.
  Result<bool> BeginRun(const SampleRun& run);
  Status Add(const std::string& run, std::span<const Sample> samples);
  // The same, and what the run measures next (null: nothing), all in one transaction: a process
  // that is killed while it measures has left both behind.
  Status AddAndTry(const std::string& run, std::span<const Sample> samples, const Point* next);
  // What the run was measuring when its process ended, once or several times in a row. Counts the
  // death of what is still marked as being measured.
  // REQUIRES: no process is measuring for this run.
  Result<std::vector<Unfinished>> TakeUnfinished(const std::string& run);
  // Puts `samples` in the place of the marks of their points.
  Status Settle(const std::string& run, std::span<const Sample> samples);
  Status EndRun(const std::string& run, SampleRun::State state);
  // A run and all its samples in one transaction. False: it is there already.
  Result<bool> AddRun(const SampleRun& run, std::span<const Sample> samples);

  // Several of them in one transaction. True for those that were not there yet.
  Result<std::vector<bool>> AddRuns(std::span<const WholeRun> runs);

  Result<std::vector<SampleRun>> Runs();
  Result<StoreContents> Read(const Filter& filter = {});
  // Everything of another store that is not here yet, in one transaction; returns how many samples
  // came. Of a run that is in both, what is missing here.
  Result<size_t> Merge(const std::string& path);
  // Reads every page of the file. An error says what is damaged.
  Status CheckIntegrity();

  const std::string& path() const { return path_; }

 private:
  struct Statements;
  explicit SampleStore(sqlite3* database, std::string path);
  Status Start(Access access);
  // Whether there is a table of what is being measured; makes one if asked to.
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
  // The row of a run that has to be there.
  Result<int64_t> KnownRun(const std::string& id);
  Status ReadRuns(const Filter& filter, std::vector<SampleRun>* list,
                  std::map<int64_t, size_t>* keys);
  Result<StoreContents> ReadRows(const Filter& filter);
  Status MergeRun(const WholeRun& theirs, const WholeRun* mine, size_t* came);

  sqlite3* database_;
  std::string path_;
  std::unique_ptr<Statements> statements_;
};

// "NAME=VALUE" lines, with line feeds and backslashes written as \n and \\: how a machine's
// environment is stored and exported. Secrets are left out, both ways: a store of earlier days may
// hold some.
std::string EnvironmentText(const std::map<std::string, std::string>& environment);
std::map<std::string, std::string> ParseEnvironmentText(const std::string& text);

}  // namespace diapason::dataset
