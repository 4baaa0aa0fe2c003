#include "dataset/store.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

#include "base/file.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/version.h"
#include "dataset/schema.h"
#include "dataset/sqlite.h"
#include "dataset/statements.h"

namespace diapason::dataset {
namespace {

// How long a writer waits for another. A transaction takes milliseconds.
constexpr int kBusyMilliseconds = 10'000;
// No legitimate text comes near this length.
constexpr int kLongestValue = 1 << 24;

Result<int64_t> Number(sqlite3* database, const std::string& path, const char* sql) {
  ASSIGN_OR_RETURN(Statement statement, Statement::Prepare(database, path, sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Integer(0) : int64_t{0};
}

// Checks that are possible before SQLite opens it.
Status CheckFile(const std::string& path, SampleStore::Access access) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) {
      return IoError(Format("cannot look at store '{}': {}", path, ErrnoText(errno)));
    }
    if (access == SampleStore::Access::kRead) {
      return NotFound("there is no store '" + path + "'; `diapason data import` makes one");
    }
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (!FileExists(folder)) {
      return NotFound(Format("cannot make store '{}': there is no folder '{}'", path, folder));
    }
    return {};
  }
  if (S_ISDIR(info.st_mode)) return Invalid("'" + path + "' is a directory, not a store");
  if (!S_ISREG(info.st_mode)) return Invalid("'" + path + "' is not a regular file");
  if (info.st_size == 0 && access == SampleStore::Access::kRead) {
    return Invalid("'" + path + "' is empty: nothing has been stored there yet");
  }
  return {};
}

Status CreateSchema(sqlite3* database, const std::string& path) {
  for (const SchemaObject& object : kSchema) {
    RETURN_IF_ERROR(Execute(database, path, object.sql));
  }
  const std::string sql = Format(
      "INSERT INTO meta VALUES('created_by', 'diapason {}'), ('created', '{}');"
      "PRAGMA application_id={}; PRAGMA user_version={}",
      kVersion, std::time(nullptr), kApplicationId, kSchemaVersion);
  return Execute(database, path, sql.c_str());
}

// The tables are exactly diapason's, and no trigger or view is attached to them.
Status CheckSchema(sqlite3* database, const std::string& path) {
  ASSIGN_OR_RETURN(
      Statement found,
      Statement::Prepare(
          database, path,
          "SELECT sql FROM sqlite_master WHERE name = ?1 AND type IN('table','index')"));
  const auto other = [&](const SchemaObject& object) {
    return Invalid(
        Format("store '{}' is damaged or was changed by another program: its table "
               "'{}' is not as diapason makes it",
               path, object.name));
  };
  for (const SchemaObject& object : kSchema) {
    ASSIGN_OR_RETURN(const bool row, found.Bind(std::string(object.name)).Step());
    if (!row || found.Text(0) != object.sql) return other(object);
    found.Reset();
  }
  ASSIGN_OR_RETURN(const bool row, found.Bind(std::string(kTrying.name)).Step());
  if (row && found.Text(0) != kTrying.sql) return other(kTrying);
  ASSIGN_OR_RETURN(
      const int64_t triggers,
      Number(database, path, "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'"));
  if (triggers != 0) {
    return Invalid("store '" + path + "' was changed by another program: it has triggers");
  }
  return {};
}

enum class FileKind { kNew, kOurs };
Result<FileKind> Recognise(sqlite3* database, const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t application, Number(database, path, "PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t version, Number(database, path, "PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t objects,
                   Number(database, path, "SELECT count(*) FROM sqlite_master"));
  if (application == 0 && version == 0 && objects == 0) return FileKind::kNew;
  if (application != kApplicationId) {
    return Invalid("'" + path +
                   "' is an SQLite file of another program, not a store of diapason; nothing was "
                   "changed");
  }
  if (version > kSchemaVersion) {
    return Invalid(
        Format("store '{}' was written by a newer diapason (format {}; this one knows "
               "{}): use that one",
               path, version, kSchemaVersion));
  }
  RETURN_IF_ERROR(CheckSchema(database, path));
  return FileKind::kOurs;
}

Status CheckSample(const Sample& sample) {
  const Point& point = sample.point;
  const auto refuse = [&](const std::string& why) {
    return Invalid("a sample of " + point.collective + " cannot be stored: " + why);
  };
  if (point.collective.empty()) return refuse("it names no collective");
  if (point.bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return refuse("its size does not fit into 63 bits");
  }
  if (point.ranks < 1 || point.nodes < 1) return refuse("it has no ranks or no nodes");
  if (std::isinf(sample.seconds) || sample.seconds < 0) return refuse("its time is no time");
  if (std::isnan(sample.seconds) && sample.outcome == SampleOutcome::kFine) {
    return refuse("it has no time and does not say why");
  }
  if (!std::isfinite(sample.coarse) || sample.coarse < 0) return refuse("its coarseness is none");
  return {};
}

}  // namespace

std::string EnvironmentText(const std::map<std::string, std::string>& environment) {
  std::string text;
  for (const auto& [name, value] : environment) {
    if (!text.empty()) text += '\n';
    for (const char c : name + "=" + MaskSecrets(name, value)) {
      if (c == '\n') {
        text += "\\n";
      } else {
        if (c == '\\') text += '\\';
        text += c;
      }
    }
  }
  return text;
}

std::map<std::string, std::string> ParseEnvironmentText(const std::string& text) {
  std::map<std::string, std::string> environment;
  for (const std::string_view line : Split(text, '\n')) {
    std::string plain;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\' && i + 1 < line.size()) {
        ++i;
        plain += line[i] == 'n' ? '\n' : line[i];
      } else {
        plain += line[i];
      }
    }
    const size_t equals = plain.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = plain.substr(0, equals);
    environment[name] = MaskSecrets(name, plain.substr(equals + 1));
  }
  return environment;
}

Status SampleStore::CheckSamples(std::span<const Sample> samples) {
  for (const Sample& sample : samples) {
    RETURN_IF_ERROR(CheckSample(sample));
  }
  return {};
}

SampleStore::SampleStore(sqlite3* database, std::string path)
    : database_(database), path_(std::move(path)) {}

SampleStore::~SampleStore() {
  statements_.reset();
  sqlite3_close(database_);
}

Result<std::unique_ptr<SampleStore>> SampleStore::Open(const std::string& path, Access access) {
  if (path.empty()) return Invalid("the store's path is empty");
  RETURN_IF_ERROR(CheckFile(path, access));
  // Readers open for writing too: they must roll back what a killed writer left half-way. SQLite
  // falls back to reading if the file cannot be written.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                    (access == Access::kWrite ? SQLITE_OPEN_CREATE : 0);
  sqlite3* database = nullptr;
  // SQLite has special names that are not plain files: ":memory:", "file:x?mode=memory".
  const std::string file = path[0] == '/' ? path : "./" + path;
  const int opened = sqlite3_open_v2(file.c_str(), &database, flags, nullptr);
  if (database == nullptr) return Internal("out of memory");
  std::unique_ptr<SampleStore> store(new SampleStore(database, path));
  if (opened != SQLITE_OK) return DatabaseError(database, path);
  RETURN_IF_ERROR(store->Start(access));
  return store;
}

Status SampleStore::Start(Access access) {
  sqlite3_extended_result_codes(database_, 1);
  sqlite3_busy_timeout(database_, kBusyMilliseconds);
  sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, kLongestValue);
  // Nothing in an untrusted file may run code or reach beyond its tables.
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  // In one transaction: another process may be creating the store concurrently.
  RETURN_IF_ERROR(Execute(database_, path_, "BEGIN"));
  Result<FileKind> kind = Recognise(database_, path_);
  const Status ended = Execute(database_, path_, "ROLLBACK");
  if (!kind.ok()) return kind.status();
  if (!ended.ok()) return ended;
  if (access == Access::kRead) {
    if (kind.value() == FileKind::kNew) {
      return Invalid("'" + path_ + "' is empty: nothing has been stored there yet");
    }
    return Execute(database_, path_, "PRAGMA query_only=1");
  }
  if (sqlite3_db_readonly(database_, "main") == 1) {
    return IoError("store '" + path_ + "' cannot be written: it is read-only here");
  }
  if (kind.value() == FileKind::kNew) {
    Transaction transaction(database_, path_);
    RETURN_IF_ERROR(transaction.Begin());
    // Another process may have been first.
    kind = Recognise(database_, path_);
    if (!kind.ok()) return kind.status();
    if (kind.value() == FileKind::kNew) {
      RETURN_IF_ERROR(CreateSchema(database_, path_));
    }
    RETURN_IF_ERROR(transaction.Commit());
  }
  return PrepareStatements();
}

Status SampleStore::PrepareStatements() {
  statements_ = std::make_unique<Statements>();
  const auto prepare = [&](Statement* statement, const char* sql) -> Status {
    ASSIGN_OR_RETURN(*statement, Statement::Prepare(database_, path_, sql));
    return {};
  };
  struct Text {
    Statement* statement;
    const char* sql;
  };
  Statements& all = *statements_;
  for (const Text& text : {
           Text{&all.find_machine,
                "SELECT id FROM machine WHERE library=?1 AND library_version=?2 AND gpu=?3 AND "
                "driver=?4 AND topology=?5 AND hosts=?6 AND tool=?7 AND simulated=?8 AND "
                "environment=?9"},
           Text{&all.add_machine,
                "INSERT INTO machine(library,library_version,gpu,driver,topology,hosts,tool,"
                "simulated,environment) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)"},
           Text{&all.find_run, "SELECT id FROM run WHERE name=?1"},
           Text{&all.add_run,
                "INSERT INTO run(name,source,origin,started,state,plan,machine) "
                "VALUES(?1,?2,?3,?4,?5,?6,?7)"},
           Text{&all.end_run, "UPDATE run SET state=?1 WHERE id=?2"},
           Text{&all.find_point,
                "SELECT id FROM point WHERE collective=?1 AND bytes=?2 AND nodes=?3 AND ranks=?4 "
                "AND algorithm=?5 AND protocol=?6 AND channels=?7 AND kind=?8 AND type=?9 AND "
                "reduce=?10 AND root=?11 AND in_place=?12 AND segment_bytes=?13 AND "
                "environment=?14 AND workload=?15"},
           Text{&all.add_point,
                "INSERT INTO point(collective,bytes,nodes,ranks,algorithm,protocol,channels,kind,"
                "type,reduce,root,in_place,segment_bytes,environment,workload) "
                "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)"},
           Text{&all.add_sample,
                "INSERT INTO sample(run,point,round,seconds,coarse,iterations,wrong,outcome,note,"
                "at) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"},
       }) {
    RETURN_IF_ERROR(prepare(text.statement, text.sql));
  }
  return {};
}

Result<bool> SampleStore::BeginRun(const SampleRun& run) { return AddRun(run, {}); }

Result<bool> SampleStore::AddRun(const SampleRun& run, std::span<const Sample> samples) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(bool added, AddRunInside(run, samples));
  RETURN_IF_ERROR(transaction.Commit());
  return added;
}

Result<std::vector<bool>> SampleStore::AddRuns(std::span<const WholeRun> runs) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  std::vector<bool> added;
  for (const WholeRun& whole : runs) {
    ASSIGN_OR_RETURN(const bool one, AddRunInside(whole.run, whole.samples));
    added.push_back(one);
  }
  RETURN_IF_ERROR(transaction.Commit());
  return added;
}

Result<bool> SampleStore::AddRunInside(const SampleRun& run, std::span<const Sample> samples) {
  RETURN_IF_ERROR(CheckSamples(samples));
  ASSIGN_OR_RETURN(const int64_t known, RunKey(run.id));
  if (known != 0) return false;
  ASSIGN_OR_RETURN(const int64_t key, InsertRun(run));
  RETURN_IF_ERROR(InsertSamples(key, samples));
  return true;
}

Result<int64_t> SampleStore::KnownRun(const std::string& id) {
  Result<int64_t> key = RunKey(id);
  if (key.ok() && key.value() == 0) {
    return NotFound("store '" + path_ + "' has no run '" + id + "'");
  }
  return key;
}

Status SampleStore::Add(const std::string& run, std::span<const Sample> samples) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  RETURN_IF_ERROR(CheckSamples(samples));
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(const int64_t key, KnownRun(run));
  RETURN_IF_ERROR(InsertSamples(key, samples));
  return transaction.Commit();
}

Status SampleStore::EndRun(const std::string& run, SampleRun::State state) {
  if (statements_ == nullptr) return Internal("the store was opened for reading");
  Transaction transaction(database_, path_);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(const int64_t key, KnownRun(run));
  Statement& end = statements_->end_run;
  RETURN_IF_ERROR(end.Bind(static_cast<int>(state)).Bind(key).Run());
  return transaction.Commit();
}

}  // namespace diapason::dataset
