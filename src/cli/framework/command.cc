#include "cli/framework/command.h"

#include <stdio_ext.h>

#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "cli/framework/json_text.h"

namespace diapason::cli {
namespace {

// Ranks may be threads of this process, so this is shared between threads.
std::mutex error_lock;
std::string first_error;
bool json_asked = false;

}  // namespace

int Fail(const Status& status) {
  const std::lock_guard<std::mutex> lock(error_lock);
  if (first_error.empty()) first_error = status.message();
  WriteError("diapason: error: " + PrintableLines(status.message()) + "\n");
  return kExitFailed;
}

void Complain(const std::string& text, const std::string& hint) {
  (void)Fail(Invalid(text));
  WriteError(hint + "\n");
}

void Warn(const std::string& text) {
  WriteError("diapason: warning: " + PrintableLines(text) + "\n");
}

void Progress(const std::string& text) { WriteError("diapason: " + PrintableLines(text) + "\n"); }

void ExpectJson(bool expected) {
  const std::lock_guard<std::mutex> lock(error_lock);
  json_asked = expected;
}

void FinishJson() {
  const std::lock_guard<std::mutex> lock(error_lock);
  if (!json_asked || first_error.empty() || __fpending(stdout) > 0) return;
  const nlohmann::ordered_json whole{{"error", first_error}};
  WriteOut(JsonText(whole) + "\n");
}

}  // namespace diapason::cli
