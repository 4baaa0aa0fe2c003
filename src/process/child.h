#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/status.h"
#include "process/spawn.h"

namespace diapason::process {

struct ChildOptions {
  std::vector<std::string> command;
  EnvironmentChanges environment;
  bool input = false;  // Write() is its standard input, which otherwise is /dev/null
  // Called by Poll() with each piece of what it writes; none: it is dropped.
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> err;
};

// A program that we have started (Spawn says how) and whose output we read. Every wait is bounded.
// One thread at a time may use it; the one that starts it has to outlive it.
class Child {
 public:
  static Result<std::unique_ptr<Child>> Start(ChildOptions options);
  // Stops a program that has not ended.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // kPeerLost if it takes no more input, kTimeout if it has not taken all of it by the deadline.
  Status Write(std::string_view text, Deadline deadline);
  void CloseInput() { in_.Close(); }

  // Waits until it writes something or ends; false at the deadline. A deadline that has passed
  // takes what is there.
  bool Poll(Deadline deadline);
  // Polls until it has ended; false at the deadline.
  bool Wait(Deadline deadline);
  // Takes what is left in its pipes, which another process may hold open: for at most a second.
  void Drain();
  // Asks everything in its session to end (SIGTERM), and kills what is left after `grace`.
  void Stop(std::chrono::milliseconds grace);

  bool ended() const { return ended_; }
  // Whether more output may come.
  bool out_open() const { return out_.open(); }
  bool err_open() const { return err_.open(); }
  // Once it has ended: its exit status, or 128 + the signal that killed it.
  int status() const { return status_; }
  // Of it and the descendants that were waited for.
  const rusage& usage() const { return usage_; }

 private:
  explicit Child(ChildOptions options) : options_(std::move(options)) {}
  void Reap();

  ChildOptions options_;
  pid_t pid_ = -1;
  Descriptor in_;
  Descriptor out_;
  Descriptor err_;
  Descriptor exit_;  // readable when it has ended; none where the kernel is too old
  bool ended_ = true;
  int status_ = 0;
  rusage usage_{};
};

// What is kept of a program's output: its beginning and its end, each of `half` bytes or a little
// more.
class BoundedText {
 public:
  explicit BoundedText(size_t half = size_t{2} << 20) : half_(half) {}
  void Add(std::string_view text);
  // With a line "..." where something is missing.
  std::string Text() const;
  // The last lines, for errors.
  std::string Tail(size_t lines) const;

 private:
  size_t half_;
  std::string head_;
  std::string tail_;  // the last `half_` bytes, or up to twice as many
  bool cut_ = false;
};

}  // namespace diapason::process
