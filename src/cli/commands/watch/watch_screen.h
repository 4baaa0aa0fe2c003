#pragma once

#include <signal.h>

#include <string>

namespace diapason::cli {

// The terminal while output is redrawn in place, and the signals that end the redrawing. Changes
// process-wide state: at most one object at a time, used by the main thread.
class WatchScreen {
 public:
  // `redraw`: standard output is a terminal that supports it. Signal handlers are installed in any
  // case.
  explicit WatchScreen(bool redraw);
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  static bool Redraws();  // whether standard output is such a terminal

  // Shows a text in place of the previous one, cut to the size of the window.
  void Show(const std::string& text);
  // Restores the screen and prints the last text there.
  void Leave();

  // Signal mask to wait with: signals are delivered only during that wait.
  const sigset_t* waiting_mask() const { return &before_; }
  // A signal that ends the process has arrived.
  static bool Stopped();
  // The window has a new size, or the process continues after a stop: redraw.
  void Refresh();

 private:
  void Enter();

  const bool redraw_;
  bool entered_ = false;
  std::string last_;
  sigset_t before_{};
  struct sigaction old_[6]{};
};

}  // namespace diapason::cli
