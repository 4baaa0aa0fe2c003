#pragma once

#include <cstdint>
#include <string>

// What one rank of an attacked job is told on its command line, as name=value.
namespace attack {

struct Options {
  std::string plugin;
  std::string board;
  int rank = 0;
  int ranks = 1;
  int nodes = 1;
  uint32_t calls = 1000;
  uint64_t seed = 1;
  uint64_t id = 1;
  int version = 22809;
  uint32_t lag = 3;            // how many calls a rank may be ahead of another
  uint32_t pause = 60;         // microseconds after each call
  uint32_t communicators = 1;  // one after the other
  uint32_t sizes = 3;          // size bands
  uint32_t fresh = 0;          // a new size band every so many calls, to keep the store busy
  bool collectives = false;    // all five, not allreduce alone
  bool profiler = true;
  bool twice = false;  // asks about every call twice
  uint32_t ahead = 0;  // bits: questions before every call that are about no call

  // What happens now and then, in calls of a thousand. The first six happen on all ranks or on
  // none; the others on this one alone.
  uint32_t captured = 0;
  uint32_t selected = 0;  // a configuration of the call's own names an algorithm
  uint32_t pairs = 0;     // one group over this communicator and a second one
  uint32_t groups = 0;
  uint32_t nonblocking = 0;
  uint32_t late = 0;
  uint32_t simulated = 0;
  uint32_t simulated_then_sent = 0;  // a simulated group, and then a send
  uint32_t sent = 0;                 // point to point

  // Somebody sets the library's event mask on this rank before this call.
  int64_t mask_at = -1;
  int mask = 0;

  // Allocations fail on the asking thread: so many from the first on, in a creation or from a call
  // on.
  int64_t fail_first = -1;
  int64_t fail_count = 1;
  int64_t fail_call = -1;    // -1: in the first creation
  bool fail_others = false;  // not on the asking thread, but on all others, from then on

  // What the checker must notice: this rank is broken on purpose.
  std::string broken;  // flip, error, stdout, crash, hang, slow
};

// Exits with a message when it is not understood.
Options ReadOptions(int argc, char** argv);

}  // namespace attack
