#include "cli/framework/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "report/table.h"

namespace diapason::cli {
namespace {

constexpr int kWidest = 120;

std::mutex line_lock;
bool line_drawn = false;
bool table_written = false;

// Columns of the terminal behind a descriptor; 0 if there is none or it does not say.
int ColumnsOf(int descriptor) {
  winsize size{};
  if (isatty(descriptor) != 1 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

// REQUIRES: line_lock.
void Erase() {
  if (line_drawn) std::fputs("\r\033[K", stderr);
  line_drawn = false;
}

void Write(std::string_view text, FILE* file) { std::fwrite(text.data(), 1, text.size(), file); }

bool Set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

void WriteOut(std::string_view text) {
  const std::lock_guard<std::mutex> lock(line_lock);
  Erase();
  if (report::CurrentTableStyle().format == report::TableFormat::kText) {
    Write(text, stdout);
    return;
  }
  for (const std::string& table : report::TablesOf(text)) {
    if (table_written) Write("\n", stdout);
    Write(table, stdout);
    table_written = true;
  }
}

void WriteError(std::string_view text) {
  const std::lock_guard<std::mutex> lock(line_lock);
  Erase();
  Write(text, stderr);
}

void DrawLine(const std::string& text) {
  const std::lock_guard<std::mutex> lock(line_lock);
  // What was printed before stands above the line.
  if (isatty(STDOUT_FILENO) == 1) std::fflush(stdout);
  const int columns = ColumnsOf(STDERR_FILENO);
  const int width = columns > 20 ? columns : kWidest;
  std::fprintf(stderr, "\r\033[K%.*s", width - 1, text.c_str());
  line_drawn = true;
}

void EraseLine() {
  const std::lock_guard<std::mutex> lock(line_lock);
  Erase();
}

std::string& AskedFormat() {
  static std::string format = "text";
  return format;
}

void PrepareOutput() {
  report::TableStyle style;
  const std::string& format = AskedFormat();
  style.format = format == "markdown" ? report::TableFormat::kMarkdown
                 : format == "csv"    ? report::TableFormat::kCsv
                                      : report::TableFormat::kText;
  style.columns = static_cast<size_t>(std::max(0, ColumnsOf(STDOUT_FILENO)));
  style.colours = ColoursOn();
  report::SetTableStyle(style);
}

bool ColoursOn() {
  static const bool on = [] {
    if (Set("NO_COLOR")) return false;
    const char* const force = std::getenv("CLICOLOR_FORCE");
    if (Set("CLICOLOR_FORCE") && std::strcmp(force, "0") != 0) return true;
    const char* const terminal = std::getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 &&
           (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
  }();
  return on;
}

int TerminalColumns() {
  const int columns = ColumnsOf(STDOUT_FILENO);
  return columns == 0 ? 80 : std::min(columns, kWidest);
}

}  // namespace diapason::cli
