#include "cli/framework/command.h"

#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "cli/framework/json_text.h"

namespace diapason::cli {
namespace {

constexpr int kWidest = 120;

// Ranks may be threads of this process, so this is shared between threads.
std::mutex error_lock;
std::string first_error;
bool json_asked = false;

}  // namespace

int Fail(const Status& status) {
  const std::lock_guard<std::mutex> lock(error_lock);
  if (first_error.empty()) first_error = status.message();
  std::fprintf(stderr, "diapason: error: %s\n", PrintableLines(status.message()).c_str());
  return kExitFailed;
}

void Complain(const std::string& text, const std::string& hint) {
  (void)Fail(Invalid(text));
  std::fprintf(stderr, "%s\n", hint.c_str());
}

void Warn(const std::string& text) {
  std::fprintf(stderr, "diapason: warning: %s\n", PrintableLines(text).c_str());
}

void Progress(const std::string& text) {
  std::fprintf(stderr, "diapason: %s\n", PrintableLines(text).c_str());
}

void ExpectJson(bool expected) {
  const std::lock_guard<std::mutex> lock(error_lock);
  json_asked = expected;
}

void FinishJson() {
  const std::lock_guard<std::mutex> lock(error_lock);
  if (!json_asked || first_error.empty() || __fpending(stdout) > 0) return;
  const nlohmann::ordered_json whole{{"error", first_error}};
  PrintOut("{}\n", JsonText(whole));
}

bool ColoursOn() {
  static const bool on = [] {
    const char* no = std::getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) == 1 && (no == nullptr || *no == '\0');
  }();
  return on;
}

int TerminalColumns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 80;
  return size.ws_col == 0 ? 80 : std::min<int>(size.ws_col, kWidest);
}

}  // namespace diapason::cli
