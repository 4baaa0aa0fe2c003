// Rows of the store: how runs, machines, points and samples are written and read.
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "dataset/sqlite.h"
#include "dataset/statements.h"
#include "dataset/store.h"

namespace diapason::dataset {
namespace {

// The id that `find` returns, or that of the row that `add` creates; both take the same values.
template <typename Bind>
Result<int64_t> FindOrAdd(sqlite3* database, Statement* find, Statement* add, const Bind& bind) {
  bind(find);
  ASSIGN_OR_RETURN(const bool row, find->Step());
  const int64_t id = row ? find->Integer(0) : 0;
  find->Reset();
  if (id != 0) return id;
  bind(add);
  RETURN_IF_ERROR(add->Run());
  return sqlite3_last_insert_rowid(database);
}

// A number from a file that may be damaged or hostile.
template <typename Number>
bool Fits(int64_t value, int64_t low, int64_t high, Number* number) {
  *number = static_cast<Number>(value);
  return value >= low && value <= high;
}

constexpr int64_t kIntMax = std::numeric_limits<int>::max();

bool ReadPoint(const Statement& row, Point* point) {
  bool fits = true;
  int kind = 0;
  int in_place = 0;
  fits &= Fits(row.Integer(1), 0, 1, &kind);
  point->kind = static_cast<Point::Kind>(kind);
  point->collective = row.Text(2);
  fits &= Fits(row.Integer(3), 0, std::numeric_limits<int64_t>::max(), &point->bytes);
  fits &= Fits(row.Integer(4), 1, kIntMax, &point->nodes);
  fits &= Fits(row.Integer(5), 1, kIntMax, &point->ranks);
  point->type = row.Text(6);
  point->reduce = row.Text(7);
  fits &= Fits(row.Integer(8), -1, kIntMax, &point->root);
  fits &= Fits(row.Integer(9), 0, 1, &in_place);
  point->in_place = in_place != 0;
  point->algorithm = row.Text(10);
  point->protocol = row.Text(11);
  fits &= Fits(row.Integer(12), 0, kIntMax, &point->channels);
  fits &= Fits(row.Integer(13), 0, std::numeric_limits<int64_t>::max(), &point->segment_bytes);
  point->environment = MaskSecretsIn(row.Text(14));
  point->workload = row.Text(15);
  return fits;
}

bool ReadSample(const Statement& row, Sample* sample) {
  bool fits = true;
  int outcome = 0;
  fits &= Fits(row.Integer(2), 0, kIntMax, &sample->round);
  sample->seconds = row.Real(3);
  sample->coarse = row.Real(4);
  sample->iterations = row.Integer(5);
  sample->wrong = row.Integer(6);
  fits &= Fits(row.Integer(7), 0, 4, &outcome);
  sample->outcome = static_cast<SampleOutcome>(outcome);
  sample->note = MaskSecretsIn(row.Text(8));
  sample->at = row.Real(9);
  const bool time = std::isnan(sample->seconds)
                        ? sample->outcome != SampleOutcome::kFine
                        : sample->seconds >= 0 && std::isfinite(sample->seconds);
  return fits && time && std::isfinite(sample->coarse) && sample->coarse >= 0;
}

Status Damaged(const std::string& path, const char* table, int64_t id) {
  return Invalid(
      Format("store '{}' is damaged or was changed by another program: row {} of "
             "table '{}' holds values that cannot be",
             path, id, table));
}

}  // namespace

Result<int64_t> SampleStore::MachineId(const MachineInfo& machine) {
  const std::string environment = EnvironmentText(machine.environment);
  return FindOrAdd(database_, &statements_->find_machine, &statements_->add_machine,
                   [&](Statement* statement) {
                     statement->Bind(machine.library)
                         .Bind(machine.library_version)
                         .Bind(machine.gpu)
                         .Bind(machine.driver)
                         .Bind(machine.topology)
                         .Bind(machine.hosts)
                         .Bind(machine.tool)
                         .Bind(machine.simulated ? 1 : 0)
                         .Bind(environment);
                   });
}

Result<int64_t> SampleStore::PointId(const Point& point) {
  const std::string environment = MaskSecretsIn(point.environment);
  return FindOrAdd(database_, &statements_->find_point, &statements_->add_point,
                   [&](Statement* statement) {
                     statement->Bind(point.collective)
                         .Bind(static_cast<int64_t>(point.bytes))
                         .Bind(point.nodes)
                         .Bind(point.ranks)
                         .Bind(point.algorithm)
                         .Bind(point.protocol)
                         .Bind(point.channels)
                         .Bind(static_cast<int>(point.kind))
                         .Bind(point.type)
                         .Bind(point.reduce)
                         .Bind(point.root)
                         .Bind(point.in_place ? 1 : 0)
                         .Bind(point.segment_bytes)
                         .Bind(environment)
                         .Bind(point.workload);
                   });
}

Result<int64_t> SampleStore::RunKey(const std::string& id) {
  Statement& find = statements_->find_run;
  ASSIGN_OR_RETURN(const bool row, find.Bind(id).Step());
  const int64_t key = row ? find.Integer(0) : 0;
  find.Reset();
  return key;
}

Result<int64_t> SampleStore::InsertRun(const SampleRun& run) {
  if (run.id.empty()) return Internal("a run has no id");
  ASSIGN_OR_RETURN(const int64_t machine, MachineId(run.machine));
  RETURN_IF_ERROR(statements_->add_run.Bind(run.id)
                      .Bind(run.source)
                      .Bind(MaskSecretsIn(run.origin))
                      .Bind(std::isfinite(run.started) ? run.started : 0.0)
                      .Bind(static_cast<int>(run.state))
                      .Bind(MaskSecretsIn(run.plan))
                      .Bind(machine)
                      .Run());
  return sqlite3_last_insert_rowid(database_);
}

Status SampleStore::InsertSamples(int64_t run, std::span<const Sample> samples) {
  // Samples of one point are consecutive.
  const Point* last = nullptr;
  int64_t point = 0;
  for (const Sample& sample : samples) {
    if (last == nullptr || sample.point != *last) {
      ASSIGN_OR_RETURN(const int64_t id, PointId(sample.point));
      point = id;
      last = &sample.point;
    }
    RETURN_IF_ERROR(statements_->add_sample.Bind(run)
                        .Bind(point)
                        .Bind(sample.round)
                        .Bind(sample.seconds)
                        .Bind(sample.coarse)
                        .Bind(sample.iterations)
                        .Bind(sample.wrong)
                        .Bind(static_cast<int>(sample.outcome))
                        .Bind(MaskSecretsIn(sample.note))
                        .Bind(std::isfinite(sample.at) ? sample.at : 0.0)
                        .Run());
  }
  return {};
}

Result<std::vector<SampleRun>> SampleStore::Runs() {
  std::vector<SampleRun> runs;
  std::map<int64_t, size_t> keys;
  RETURN_IF_ERROR(ReadRuns({}, &runs, &keys));
  return runs;
}

Result<StoreContents> SampleStore::Read(const Filter& filter) {
  // One snapshot: a run that another process adds meanwhile is read completely or not at all.
  RETURN_IF_ERROR(Execute(database_, path_, "BEGIN"));
  Result<StoreContents> contents = ReadRows(filter);
  if (Status ended = Execute(database_, path_, "COMMIT"); contents.ok() && !ended.ok()) {
    return ended;
  }
  return contents;
}

Status SampleStore::ReadRuns(const Filter& filter, std::vector<SampleRun>* list,
                             std::map<int64_t, size_t>* keys) {
  ASSIGN_OR_RETURN(
      Statement runs,
      Statement::Prepare(
          database_, path_,
          "SELECT run.id,name,source,origin,started,state,plan,library,library_version,gpu,driver,"
          "topology,hosts,tool,simulated,environment FROM run JOIN machine ON "
          "machine.id=run.machine "
          "ORDER BY run.id"));
  while (true) {
    const Statement& row = runs;
    ASSIGN_OR_RETURN(const bool more, runs.Step());
    if (!more) return {};
    SampleRun run;
    run.id = row.Text(1);
    run.source = row.Text(2);
    run.origin = MaskSecretsIn(row.Text(3));
    run.started = row.Real(4);
    int state = 0;
    if (!Fits(row.Integer(5), 0, 2, &state) || !std::isfinite(run.started)) {
      return Damaged(path_, "run", row.Integer(0));
    }
    run.state = static_cast<SampleRun::State>(state);
    run.plan = MaskSecretsIn(row.Text(6));
    run.machine = {row.Text(7),  row.Text(8),          row.Text(9),
                   row.Text(10), row.Text(11),         row.Text(12),
                   row.Text(13), row.Integer(14) != 0, ParseEnvironmentText(row.Text(15))};
    if (!filter.run.empty() && run.id != filter.run) continue;
    if (!filter.library.empty() && run.machine.library != filter.library) continue;
    (*keys)[row.Integer(0)] = list->size();
    list->push_back(std::move(run));
  }
}

Result<std::vector<Unfinished>> SampleStore::ReadUnfinished(int64_t run) {
  ASSIGN_OR_RETURN(
      Statement rows,
      Statement::Prepare(
          database_, path_,
          "SELECT point.*,deaths FROM trying JOIN point ON point.id=trying.point WHERE run=?1 AND "
          "deaths>0 ORDER BY point.id"));
  rows.Bind(run);
  std::vector<Unfinished> unfinished;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return unfinished;
    Unfinished one;
    if (!ReadPoint(rows, &one.point) || !Fits(rows.Integer(16), 1, kIntMax, &one.deaths)) {
      return Damaged(path_, "trying", rows.Integer(0));
    }
    unfinished.push_back(std::move(one));
  }
}

Result<StoreContents> SampleStore::ReadRows(const Filter& filter) {
  StoreContents contents;
  std::map<int64_t, size_t> run_at;
  RETURN_IF_ERROR(ReadRuns(filter, &contents.runs, &run_at));

  std::string sql = "SELECT * FROM point WHERE 1";
  if (!filter.collective.empty()) sql += " AND collective=?1";
  if (filter.nodes) sql += Format(" AND nodes={}", *filter.nodes);
  if (filter.ranks) sql += Format(" AND ranks={}", *filter.ranks);
  if (filter.bytes) {
    sql += Format(" AND bytes={}", std::min<uint64_t>(*filter.bytes, INT64_MAX));
  }
  if (filter.kind) sql += Format(" AND kind={}", static_cast<int>(*filter.kind));
  ASSIGN_OR_RETURN(Statement points, Statement::Prepare(database_, path_, sql.c_str()));
  if (!filter.collective.empty()) points.Bind(filter.collective);
  std::map<int64_t, Point> point_at;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, points.Step());
    if (!more) break;
    const int64_t id = points.Integer(0);
    if (!ReadPoint(points, &point_at[id])) return Damaged(path_, "point", id);
  }
  if (point_at.empty() || run_at.empty()) return contents;

  ASSIGN_OR_RETURN(
      Statement samples,
      Statement::Prepare(
          database_, path_,
          filter.run.empty()
              ? "SELECT run,point,round,seconds,coarse,iterations,wrong,outcome,note,at,id FROM "
                "sample "
                "ORDER BY id"
              : "SELECT run,point,round,seconds,coarse,iterations,wrong,outcome,note,at,id FROM "
                "sample "
                "WHERE run=?1 ORDER BY id"));
  if (!filter.run.empty()) samples.Bind(run_at.begin()->first);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, samples.Step());
    if (!more) break;
    const Statement& row = samples;
    const auto run = run_at.find(row.Integer(0));
    const auto point = point_at.find(row.Integer(1));
    if (run == run_at.end() || point == point_at.end()) continue;
    StoredSample record;
    record.run = run->second;
    record.sample.point = point->second;
    if (!ReadSample(row, &record.sample)) return Damaged(path_, "sample", row.Integer(10));
    contents.records.push_back(std::move(record));
  }
  std::stable_sort(contents.records.begin(), contents.records.end(),
                   [](const StoredSample& a, const StoredSample& b) { return a.run < b.run; });
  return contents;
}

}  // namespace diapason::dataset
