#include "cli/commands/watch/watch_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace diapason::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

volatile sig_atomic_t g_stopped = 0;
volatile sig_atomic_t g_suspended = 0;
volatile sig_atomic_t g_resized = 0;

void Handle(int signal) {
  if (signal == SIGTSTP) {
    g_suspended = 1;
  } else if (signal == SIGWINCH) {
    g_resized = 1;
  } else {
    g_stopped = 1;
  }
}

// The first `columns` characters of a line; UTF-8 continuation bytes belong to the character
// before.
std::string_view Cut(std::string_view line, size_t columns) {
  size_t shown = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) == 0x80) continue;
    if (shown++ == columns) return line.substr(0, i);
  }
  return line;
}

void Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

bool WatchScreen::Redraws() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0 &&
         term[0] != '\0';
}

WatchScreen::WatchScreen(bool redraw) : redraw_(redraw) {
  g_stopped = 0;
  g_suspended = 0;
  g_resized = 0;
  sigset_t ours;
  sigemptyset(&ours);
  size_t i = 0;
  for (const int signal : kSignals) {
    struct sigaction action {};
    action.sa_handler = Handle;
    sigaction(signal, nullptr, &old_[i]);
    // Signals that are ignored (nohup) stay ignored; suspending matters only if there is a screen
    // to restore.
    const bool wanted = old_[i].sa_handler != SIG_IGN && (signal != SIGTSTP || redraw);
    if (wanted) {
      sigaction(signal, &action, nullptr);
      sigaddset(&ours, signal);
    }
    ++i;
  }
  sigprocmask(SIG_BLOCK, &ours, &before_);
}

WatchScreen::~WatchScreen() {
  Leave();
  size_t i = 0;
  for (const int signal : kSignals) sigaction(signal, &old_[i++], nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void WatchScreen::Enter() {
  if (!redraw_ || entered_) return;
  Write("\033[?1049h\033[?25l\033[2J");
  entered_ = true;
}

void WatchScreen::Leave() {
  if (!entered_) return;
  Write("\033[?25h\033[?1049l" + last_);
  entered_ = false;
  last_.clear();
}

bool WatchScreen::Stopped() { return g_stopped != 0; }

void WatchScreen::Refresh() {
  const std::string shown = last_;
  if (g_suspended != 0) {
    g_suspended = 0;
    Leave();
    raise(SIGSTOP);
    g_resized = 1;
  }
  if (g_resized != 0) {
    g_resized = 0;
    if (redraw_ && !shown.empty()) Show(shown);
  }
}

void WatchScreen::Show(const std::string& text) {
  if (!redraw_) {
    Write(text);
    return;
  }
  Enter();
  last_ = text;
  winsize window{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 1;
  const size_t rows = known ? window.ws_row : 24;
  const size_t columns = known ? window.ws_col : 80;
  std::string frame = "\033[H";
  size_t row = 0;
  for (const std::string_view line : Split(text, '\n')) {
    if (++row == rows) {
      frame += "... (Ctrl-C ends)\033[K";
      break;
    }
    frame += std::string(Cut(line, columns)) + "\033[K\r\n";
  }
  Write(frame + "\033[J");
}

}  // namespace diapason::cli
