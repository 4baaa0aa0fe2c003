/* profiler_host.h: plays the library towards the profiler half of the plugin: one set of calls for
 * every version. The plugin must report success to each, and always write the handle. */
#ifndef TESTS_ABI_PROFILER_HOST_H_
#define TESTS_ABI_PROFILER_HOST_H_

#include "host.h"
#include "profiler_abi.h"

/* Gives up when a symbol is missing. host_load comes first. */
void profiler_load(void);

/* The library's one word of wanted events. */
int event_mask(void);

/* A communicator with both halves, in the order of the library: the profiler first. */
struct watched {
  int api;
  size_t ranks;
  void* context;     /* the profiler's */
  struct comm tuner; /* of the release that brought this version of the profiler */
  uint64_t sequence;
};
/* comm_open's communicators all have this id. */
#define COMM_ID 0x1234567890abcdefull
struct watched watched_open(int api, size_t ranks, int rank);
/* The tuner first. Late events may follow. */
void watched_close(struct watched* watched);
/* The profiler half alone. */
void* profiler_open(int api, uint64_t id, size_t ranks, int rank);
void profiler_close(int api, void* context);

/* Whether this version has events for calls and launches; for times. */
bool has_calls(int api);
bool has_times(int api);

/* Events. Each returns the handle. Those a version does not have are not told, and give NULL. */
void* start_group_api(const struct watched* watched, bool captured);
void* start_coll_api(const struct watched* watched, const char* func, size_t count,
                     const char* type, bool captured);
void start_launch(const struct watched* watched);
void* start_group(const struct watched* watched);

struct run {
  const char* func;
  const char* type;
  const char* algorithm;
  const char* protocol;
  size_t count;
  int channels;
  bool symmetric; /* told from v7 on */
};
extern const struct run kRun; /* an allreduce on two channels */
void* start_coll(struct watched* watched, void* parent, const struct run* run);
void* start_p2p(const struct watched* watched);
/* On whatever context and parent. */
void* start_kernel(int api, void* context, void* parent, int channel, uint64_t stamp);
void stop_kernel(int api, void* handle, uint64_t stamp);
/* Any type, with a descriptor full of nonsense. */
void* start_nonsense(int api, void* context, void* parent, uint64_t type);
void* start_proxy_op(int api, void* context, void* parent, pid_t pid);
void stop(int api, void* handle);
void record(int api, void* handle, int state, profiler_state* arguments);

/* Runs it on another thread, and waits. */
void on_another_thread(void (*body)(void*), void* argument);

#endif /* TESTS_ABI_PROFILER_HOST_H_ */
