#pragma once

#include <signal.h>

#include <string>

namespace diapason::cli {

// The terminal while something is shown again and again in the same place, and the signals that end
// that. One object at a time.
class WatchScreen {
 public:
  // `redraw`: standard output is a terminal that can. The signals are taken in any case.
  explicit WatchScreen(bool redraw);
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  static bool Redraws();  // whether standard output is such a terminal

  // Shows a text in place of the one before, cut to the window.
  void Show(const std::string& text);
  // Back to the screen as it was; what was shown last is printed there.
  void Leave();

  // Signals come while one waits with this mask, and not in between.
  const sigset_t* waiting_mask() const { return &before_; }
  // One that ends us has come.
  static bool Stopped();
  // The window has another size, or we were stopped and go on: draw again.
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
