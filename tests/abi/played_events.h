/* played_events.h: plays what a library does with a profiler: which events it tells for a mask, in
 * which order, with which parents, in every version. Written from the library's own rules. */
#ifndef TESTS_ABI_PLAYED_EVENTS_H_
#define TESTS_ABI_PLAYED_EVENTS_H_

#include "profiler_abi.h"

struct player {
  int api;
  const profiler_any* profiler;
  int* word; /* the library's one mask */
  void* context;
  uint64_t sequence;
  bool named;     /* tells the communicator's name where a version has it */
  bool other_pid; /* network operations are those of another process */
};

void player_open(struct player* player, uint64_t id, int rank, tuner_logger logger);
void player_close(struct player* player);

/* A collective with everything below it, in a group of its own. What it leaves for later (kernels,
 * network operations) is told by play_rest, possibly on another thread. */
struct played_call {
  struct player* player;
  int mask; /* read once, when the call began */
  void* coll;
  void* p2p;
  uint64_t stamp;
};
struct played_call play_call(struct player* player);
void play_rest(const struct played_call* call);
/* A captured call, and its replays. */
void* play_capture(struct player* player);
void play_replay(struct player* player, void* captured, int mask);
/* A collective of the copy engines, v6 and later; proxy control events. */
void play_copy_engine(struct player* player);
void play_control(struct player* player);
/* Whether a library tells a profiler with this mask of this type. */
bool told(int mask, int type);

#endif /* TESTS_ABI_PLAYED_EVENTS_H_ */
