#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "domain/finding.h"
#include "policy/policy.h"

namespace diapason::policy {

// A message about a position in a policy file.
struct Diagnostic {
  Severity severity = Severity::kError;  // or kWarning
  int line = 0;                          // from 1; 0: the file as a whole
  int column = 0;                        // from 1, in bytes; 0: the line as a whole
  std::string message;
};

// "x.conf:7:18: error: unknown algorithm 'badring'; did you mean 'ring'?"
std::string DiagnosticText(const std::string& file, const Diagnostic& diagnostic);

struct ParseOptions {
  // The library of a file that does not name one.
  Library library = Library::kNccl;
  // Accept rows that do not match the header's checksum: for a file edited by hand.
  bool ignore_checksum = false;
  // Look for rows that never match or never apply; a job does not need these warnings.
  bool check_rows = true;
};

struct ParseOutcome {
  Policy policy;
  bool names_library = false;  // the file's header names its library
  // Errors and warnings in file order. At most kMostDiagnostics are kept.
  std::vector<Diagnostic> diagnostics;
  size_t errors = 0;
  size_t warnings = 0;
};
inline constexpr size_t kMostDiagnostics = 100;

// Parses the text of a policy file strictly. A policy with an error must not be used: typos are not
// guessed. Never throws because of the content; linear time. Warnings name rows that can never
// match or never be chosen.
ParseOutcome ParsePolicy(std::string_view text, const ParseOptions& options);

// The same for a caller that needs the policy or one sentence: the first error, and the number of
// others.
Result<Policy> ParseStrictly(std::string_view text, const std::string& file,
                             const ParseOptions& options);

}  // namespace diapason::policy
