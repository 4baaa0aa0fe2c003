#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace diapason::job_profile {

// The calls of a program as one sequence. `pause` is the time before a call in which no other one
// ran, in seconds.
struct Sequence {
  std::vector<uint64_t> kinds;
  std::vector<double> pauses;
};

// The part that repeats: an iteration, from the call with the longest pause before it.
struct Cycle {
  std::vector<uint64_t> kinds;  // empty: nothing repeats
  // How often a part of it repeats, as layers and accumulated gradients do: 1 to 8.
  size_t parts = 1;
};

// What is found repeats exactly at least three times and has at least two calls. Start-up calls,
// evaluations, and calls that only some iterations have may stand between the repetitions.
//
// - Of several periods the longest counts that explains more calls than the shorter ones: the
//   layers of a model repeat inside its iteration.
// - An iteration that is different now and then (every tenth has calls of its own) makes a long
//   period too. It is told from layers and from accumulated gradients by its parts: there are more
//   than eight, of at least four calls, with one pause that is longer than the others.
// - Calls that are all alike, or alike layer by layer, have iterations only if there are longer
//   pauses at equal distances. Hiccups of the machine may stand between, and a pause may be short
//   now and then.
//
// `kinds` of the sequence are changed in the last case: those after a long pause become others.
Cycle FindCycle(Sequence* sequence);

// One iteration in a sequence.
struct Piece {
  size_t first = 0;
  size_t end = 0;         // one past its last call, calls of its own included
  size_t extra = 0;       // calls that are not in the cycle
  bool followed = false;  // the next iteration begins at `end`
};
// The iterations of a sequence, by its cycle.
std::vector<Piece> FindPieces(const Sequence& sequence, const Cycle& cycle);

}  // namespace diapason::job_profile
