#include "dataset/sqlite.h"

#include <sqlite3.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"

namespace diapason::dataset {

Status DatabaseError(sqlite3* database, const std::string& path) {
  const int code = sqlite3_extended_errcode(database);
  const std::string name = "store '" + path + "'";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return TimedOut(name +
                      ": another process has held it for 10 seconds; try again, or see who "
                      "has it open (`fuser " +
                      path + "`)");
    case SQLITE_CORRUPT:
      return Invalid(name + " is damaged (" + sqlite3_errmsg(database) +
                     "): take a copy of it from before; `sqlite3 " + path +
                     " .recover` saves what can be read");
    case SQLITE_NOTADB:
      return Invalid("'" + path + "' is not a store of diapason: it is no SQLite file");
    case SQLITE_FULL:
      return IoError(name + ": no space left on its file system; nothing of this step was stored");
    case SQLITE_READONLY:
      if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY) {
        return IoError(name +
                       ": a writer was killed, and what it left has to be undone first; "
                       "that needs a file and a folder that can be written, once");
      }
      return IoError(name + " or its folder cannot be written");
    case SQLITE_CANTOPEN:
      return IoError(name +
                     " cannot be opened: look at its permissions; writing needs a folder that can "
                     "be written too");
    case SQLITE_IOERR:
      return IoError(Format("{}: reading or writing failed ({}, code {})", name,
                            sqlite3_errmsg(database), code));
    default:
      return Internal(Format("{}: {} (SQLite code {})", name, sqlite3_errmsg(database), code));
  }
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      path_(std::move(other.path_)),
      next_(other.next_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this == &other) return *this;
  sqlite3_finalize(statement_);
  database_ = other.database_;
  statement_ = std::exchange(other.statement_, nullptr);
  path_ = std::move(other.path_);
  next_ = other.next_;
  return *this;
}

Result<Statement> Statement::Prepare(sqlite3* database, const std::string& path, const char* sql) {
  Statement statement;
  statement.database_ = database;
  statement.path_ = path;
  if (sqlite3_prepare_v2(database, sql, -1, &statement.statement_, nullptr) != SQLITE_OK) {
    return DatabaseError(database, path);
  }
  return statement;
}

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_, next_++, value);
  return *this;
}

Statement& Statement::Bind(double value) {
  if (std::isnan(value)) {
    sqlite3_bind_null(statement_, next_++);
  } else {
    sqlite3_bind_double(statement_, next_++, value);
  }
  return *this;
}

Statement& Statement::Bind(const std::string& value) {
  sqlite3_bind_text(statement_, next_++, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);  // NOLINT: SQLite's own cast of -1 to a pointer
  return *this;
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const Status error = DatabaseError(database_, path_);
  Reset();
  return error;
}

Status Statement::Run() {
  const Result<bool> done = Step();
  Reset();
  return done.status();
}

void Statement::Reset() {
  sqlite3_reset(statement_);
  next_ = 1;
}

int64_t Statement::Integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::Real(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(statement_, column);
}

std::string Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return "";
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
  return {reinterpret_cast<const char*>(text), size};
}

Status Execute(sqlite3* database, const std::string& path, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return DatabaseError(database, path);
  }
  return {};
}

Transaction::~Transaction() {
  // An error may have rolled it back already; then this fails harmlessly.
  if (open_) (void)Execute(database_, path_, "ROLLBACK");
}

Status Transaction::Begin() {
  const Status begun = Execute(database_, path_, "BEGIN IMMEDIATE");
  open_ = begun.ok();
  return begun;
}

Status Transaction::Commit() {
  const Status committed = Execute(database_, path_, "COMMIT");
  // A commit that failed because of a lock or missing space leaves the transaction open.
  if (committed.ok()) open_ = false;
  return committed;
}

}  // namespace diapason::dataset
