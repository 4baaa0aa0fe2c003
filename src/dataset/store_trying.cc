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
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(
      Statement find,
      Statement::Prepare(database_, path_, "SELECT 1 FROM sqlite_master WHERE name = ?1"));
  ASSIGN_OR_RETURN(const bool found, find.Bind(std::string(kTrying.name)).Step());
  find.Reset();
  if (!found) {
    if (!make) return false;
    RETURN_IF_ERROR(Execute(database_, path_, kTrying.sql));
  }
  RETURN_IF_ERROR(transaction.Commit());
  const std::pair<Statement*, const char*> statements[] = {
      {&all.end_trying, "DELETE FROM trying WHERE run=?1 AND since>0"},
      {&all.begin_trying,
       "INSERT INTO trying(run,point,since,deaths) VALUES(?1,?2,?3,0) "
       "ON CONFLICT(run,point) DO UPDATE SET since=excluded.since"},
      {&all.count_deaths, "UPDATE trying SET since=0, deaths=deaths+1 WHERE run=?1 AND since>0"},
      {&all.forget_trying, "DELETE FROM trying WHERE run=?1 AND point=?2"}};
  for (const auto& [statement, sql] : statements) {
    ASSIGN_OR_RETURN(*statement, Statement::Prepare(database_, path_, sql));
  }
  return true;
}

Status SampleStore::AddAndTry(const std::string& run, std::span<const Sample> samples,
                              const Point* next) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  RETURN_IF_ERROR(CheckSamples(samples));
  ASSIGN_OR_RETURN(const bool marks, UseTrying(next != nullptr));
  if (!marks) return Add(run, samples);
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(const int64_t key, KnownRun(run));
  RETURN_IF_ERROR(InsertSamples(key, samples));
  RETURN_IF_ERROR(statements_->end_trying.Bind(key).Run());
  if (next != nullptr) {
    ASSIGN_OR_RETURN(const int64_t point, PointId(*next));
    RETURN_IF_ERROR(statements_->begin_trying.Bind(key)
                        .Bind(point)
                        .Bind(static_cast<double>(std::time(nullptr)))
                        .Run());
  }
  return transaction.Commit();
}

Status SampleStore::Settle(const std::string& run, std::span<const Sample> samples) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  RETURN_IF_ERROR(CheckSamples(samples));
  ASSIGN_OR_RETURN(const bool marks, UseTrying(false));
  if (!marks) return Add(run, samples);
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(const int64_t key, KnownRun(run));
  RETURN_IF_ERROR(InsertSamples(key, samples));
  for (const Sample& sample : samples) {
    ASSIGN_OR_RETURN(const int64_t point, PointId(sample.point));
    RETURN_IF_ERROR(statements_->forget_trying.Bind(key).Bind(point).Run());
  }
  return transaction.Commit();
}

Result<std::vector<Unfinished>> SampleStore::TakeUnfinished(const std::string& run) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  ASSIGN_OR_RETURN(const bool marks, UseTrying(false));
  if (!marks) return std::vector<Unfinished>();
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(const int64_t key, KnownRun(run));
  RETURN_IF_ERROR(statements_->count_deaths.Bind(key).Run());
  ASSIGN_OR_RETURN(std::vector<Unfinished> unfinished, ReadUnfinished(key));
  RETURN_IF_ERROR(transaction.Commit());
  return unfinished;
}

}  // namespace diapason::dataset
