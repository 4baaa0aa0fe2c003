#pragma once

// The error type is part of the public interface: comm.h returns it. These are the two ways to pass
// an error on to the caller.
#include "diapason/status.h"  // IWYU pragma: export

namespace diapason::internal {

inline Status StatusOf(Status status) { return status; }
template <typename T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

}  // namespace diapason::internal

// Returns from the function where the Status or Result is an error.
//   RETURN_IF_ERROR(WriteFile(path, text));
#define RETURN_IF_ERROR(expression)                                                             \
  do {                                                                                          \
    if (auto returned_error = ::diapason::internal::StatusOf(expression); !returned_error.ok()) \
      return returned_error;                                                                    \
  } while (false)

// Declares a variable with the value of a Result, or assigns it to one; or returns the error.
//   ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMost));
// A type with a comma needs an alias: the comma would end the argument.
// A declaration cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_AS(ASSIGN_OR_RETURN_NAME(__LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_AS(result, declaration, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return result.status();                  \
  declaration = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)
#define ASSIGN_OR_RETURN_NAME(line) ASSIGN_OR_RETURN_JOIN(line)
#define ASSIGN_OR_RETURN_JOIN(line) result_of_line_##line
