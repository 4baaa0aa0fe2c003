#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace diapason::dataset {

// The last error of `database` as a sentence about the store at `path`, with advice.
Status DatabaseError(sqlite3* database, const std::string& path);

// One prepared statement. Values are bound in order, starting over after each Reset.
class Statement {
 public:
  Statement() = default;
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  static Result<Statement> Prepare(sqlite3* database, const std::string& path, const char* sql);
  bool prepared() const { return statement_ != nullptr; }

  Statement& Bind(int64_t value);
  Statement& Bind(int value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(double value);  // NaN is stored as NULL
  Statement& Bind(const std::string& value);

  // True: a row is available. False: the statement is done.
  Result<bool> Step();
  // Runs a statement that gives no rows to its end, and resets it.
  Status Run();
  void Reset();

  int64_t Integer(int column) const;
  double Real(int column) const;  // NULL is NaN
  std::string Text(int column) const;

 private:
  sqlite3* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  std::string path_;
  int next_ = 1;
};

Status Execute(sqlite3* database, const std::string& path, const char* sql);

// BEGIN IMMEDIATE, so that two writers wait here and not half-way through; the destructor rolls
// back unless committed.
class Transaction {
 public:
  Transaction(sqlite3* database, const std::string& path) : database_(database), path_(path) {}
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Status Begin();
  Status Commit();

 private:
  sqlite3* database_;
  const std::string& path_;
  bool open_ = false;
};

}  // namespace diapason::dataset
