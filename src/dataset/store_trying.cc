// The mark of what a run is measuring, written before the measurement: a resumed run knows which
// measurement its process died in.
#include <ctime>

#include "dataset/schema.h"
#include "dataset/sqlite.h"
#include "dataset/statements.h"
#include "dataset/store.h"

namespace diapason::dataset {

Result<bool> SampleStore::UseTrying(bool make) {
  Statements& all = *statements_;
  if (all.forget_trying.prepared()) return true;
  Transaction transaction(database_, path_);
  if (Status begun = transaction.Begin(); !begun.ok()) return begun;
  Result<Statement> find =
      Statement::Prepare(database_, path_, "SELECT 1 FROM sqlite_master WHERE name = ?1");
  if (!find.ok()) return find.status();
  const Result<bool> found = find.value().Bind(std::string(kTrying.name)).Step();
  if (!found.ok()) return found;
  find.value().Reset();
  if (!found.value()) {
    if (!make) return false;
    if (Status made = Execute(database_, path_, kTrying.sql); !made.ok()) return made;
  }
  if (Status done = transaction.Commit(); !done.ok()) return done;
  const std::pair<Statement*, const char*> statements[] = {
      {&all.end_trying, "DELETE FROM trying WHERE run=?1 AND since>0"},
      {&all.begin_trying,
       "INSERT INTO trying(run,point,since,deaths) VALUES(?1,?2,?3,0) "
       "ON CONFLICT(run,point) DO UPDATE SET since=excluded.since"},
      {&all.count_deaths, "UPDATE trying SET since=0, deaths=deaths+1 WHERE run=?1 AND since>0"},
      {&all.forget_trying, "DELETE FROM trying WHERE run=?1 AND point=?2"}};
  for (const auto& [statement, sql] : statements) {
    Result<Statement> prepared = Statement::Prepare(database_, path_, sql);
    if (!prepared.ok()) return prepared.status();
    *statement = std::move(prepared).value();
  }
  return true;
}

Status SampleStore::AddAndTry(const std::string& run, std::span<const Sample> samples,
                              const Point* next) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  if (Status fine = CheckSamples(samples); !fine.ok()) return fine;
  const Result<bool> marks = UseTrying(next != nullptr);
  if (!marks.ok()) return marks.status();
  if (!marks.value()) return Add(run, samples);
  Transaction transaction(database_, path_);
  if (Status begun = transaction.Begin(); !begun.ok()) return begun;
  const Result<int64_t> key = KnownRun(run);
  if (!key.ok()) return key.status();
  if (Status added = InsertSamples(key.value(), samples); !added.ok()) return added;
  if (Status ended = statements_->end_trying.Bind(key.value()).Run(); !ended.ok()) return ended;
  if (next != nullptr) {
    const Result<int64_t> point = PointId(*next);
    if (!point.ok()) return point.status();
    const Status marked = statements_->begin_trying.Bind(key.value())
                              .Bind(point.value())
                              .Bind(static_cast<double>(std::time(nullptr)))
                              .Run();
    if (!marked.ok()) return marked;
  }
  return transaction.Commit();
}

Status SampleStore::Settle(const std::string& run, std::span<const Sample> samples) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  if (Status fine = CheckSamples(samples); !fine.ok()) return fine;
  const Result<bool> marks = UseTrying(false);
  if (!marks.ok()) return marks.status();
  if (!marks.value()) return Add(run, samples);
  Transaction transaction(database_, path_);
  if (Status begun = transaction.Begin(); !begun.ok()) return begun;
  const Result<int64_t> key = KnownRun(run);
  if (!key.ok()) return key.status();
  if (Status added = InsertSamples(key.value(), samples); !added.ok()) return added;
  for (const Sample& sample : samples) {
    const Result<int64_t> point = PointId(sample.point);
    if (!point.ok()) return point.status();
    const Status forgot = statements_->forget_trying.Bind(key.value()).Bind(point.value()).Run();
    if (!forgot.ok()) return forgot;
  }
  return transaction.Commit();
}

Result<std::vector<Unfinished>> SampleStore::TakeUnfinished(const std::string& run) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  const Result<bool> marks = UseTrying(false);
  if (!marks.ok()) return marks.status();
  if (!marks.value()) return std::vector<Unfinished>();
  Transaction transaction(database_, path_);
  if (Status begun = transaction.Begin(); !begun.ok()) return begun;
  const Result<int64_t> key = KnownRun(run);
  if (!key.ok()) return key.status();
  if (Status counted = statements_->count_deaths.Bind(key.value()).Run(); !counted.ok()) {
    return counted;
  }
  Result<std::vector<Unfinished>> unfinished = ReadUnfinished(key.value());
  if (!unfinished.ok()) return unfinished;
  if (Status done = transaction.Commit(); !done.ok()) return done;
  return unfinished;
}

}  // namespace diapason::dataset
