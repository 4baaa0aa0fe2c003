#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "policy/policy.h"

namespace diapason::policy {

// Something to say about a place in a policy file.
struct Diagnostic {
  enum class Severity { kError, kWarning };
  Severity severity = Severity::kError;
  int line = 0;    // from 1; 0: the file as a whole
  int column = 0;  // from 1, in bytes; 0: the line as a whole
  std::string message;
};

// "x.conf:7:18: error: unknown algorithm 'badring'; did you mean 'ring'?"
std::string DiagnosticText(const std::string& file, const Diagnostic& diagnostic);

struct ParseOptions {
  // The library of a file that does not name one: the reader's own.
  Library library = Library::kNccl;
  // Read the rows although they do not add up to the header's checksum: for a file edited by hand.
  bool ignore_checksum = false;
  // Look for rows that never match or never apply; nobody reads the warnings in a job.
  bool check_rows = true;
};

struct ParseOutcome {
  Policy policy;
  bool names_library = false;  // the file's header says which library it is for
  // Errors and warnings in the order of the file. At most kMostDiagnostics are kept.
  std::vector<Diagnostic> diagnostics;
  size_t errors = 0;
  size_t warnings = 0;
};
inline constexpr size_t kMostDiagnostics = 100;

// Reads the text of a policy file, strictly. With one error the policy is not to be used: what a
// typo was meant to be is the author's to say. Never throws on content, whatever the content; time
// grows with its length. Warnings name rows that can never match or never be chosen.
ParseOutcome ParsePolicy(std::string_view text, const ParseOptions& options);

// The same for a caller that wants the policy or one sentence: the first error, and how many more.
Result<Policy> ParseStrictly(std::string_view text, const std::string& file,
                             const ParseOptions& options);

}  // namespace diapason::policy
