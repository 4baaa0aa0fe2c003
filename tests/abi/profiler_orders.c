/* The orders in which the library tells events and asks questions, as they were seen on real
 * communicators, with every version of the profiler interface. Seen from outside: every call
 * succeeds, handles are written, the mask is what it may be, nothing breaks.
 *
 *   profiler_orders PLUGIN */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "profiler_host.h"

enum { RANKS = 4, BYTES = 4096, REPLAYS = 200 };

/* Whether anybody is interested in this case: then contexts and some handles must be there. */
static bool g_watching;

static void ask(struct watched* watched, size_t bytes) {
  const struct question question = ordinary(ALLREDUCE, bytes);
  decide(&watched->tuner, &question);
}

/* The parent of a Coll: its call, or in old versions its group. */
static void* parent_of(const struct watched* watched, void* call, void* group) {
  return has_calls(watched->api) ? call : group;
}

static void* call(const struct watched* watched, size_t count, bool captured) {
  void* handle = start_coll_api(watched, "AllReduce", count, "ncclFloat32", captured);
  if (has_calls(watched->api)) {
    CHECK(!g_watching || handle != NULL, "v%d: a call without a handle", watched->api);
    stop(watched->api, handle);
  }
  return handle;
}

static void* begin_plan(const struct watched* watched) {
  start_launch(watched);
  void* group = start_group(watched);
  if (!has_calls(watched->api)) {
    CHECK(!g_watching || group != NULL, "v%d: a group without a handle tells nothing",
          watched->api);
  }
  return group;
}

/* Both channels, in whatever order. */
static void kernels(const struct watched* watched, void* run, uint64_t stamp) {
  const bool timed = g_watching && (event_mask() & KERNEL_CH) != 0;
  CHECK(run == NULL || timed, "v%d remembers a run nobody times", watched->api);
  void* one = start_kernel(watched->api, watched->context, run, 0, stamp);
  void* two = start_kernel(watched->api, watched->context, run, 1, stamp + 5);
  stop_kernel(watched->api, two, stamp + 900);
  stop_kernel(watched->api, one, stamp + 1000);
}

static void eager(struct watched* watched) {
  void* group_api = start_group_api(watched, false);
  record(watched->api, group_api, GROUP_START_STOP, NULL);
  void* parent = call(watched, BYTES / 4, false);
  ask(watched, BYTES);
  void* group = begin_plan(watched);
  void* run = start_coll(watched, parent_of(watched, parent, group), &kRun);
  stop(watched->api, run);
  stop(watched->api, group);
  stop(watched->api, group_api);
  CHECK((run != NULL) == (g_watching && (event_mask() & KERNEL_CH) != 0), "v%d: run %p, mask 0x%x",
        watched->api, run, event_mask());
  kernels(watched, run, 1000); /* after the stop of their parent */
  record(watched->api, run, STEP_SEND_WAIT, NULL);
}

/* Two of three are asked about as one; a simulated group asks and launches nothing. */
static void group_of_three(struct watched* watched, bool simulated) {
  void* calls[3];
  void* group_api = start_group_api(watched, false);
  for (int i = 0; i < 3; ++i) calls[i] = call(watched, i == 2 ? 262144 : 16384, false);
  ask(watched, 131072);
  ask(watched, 1048576);
  if (!simulated) {
    void* group = begin_plan(watched);
    void* runs[3];
    /* By size, not in the order of the calls. */
    for (int i = 0; i < 3; ++i) {
      runs[i] = start_coll(watched, parent_of(watched, calls[2 - i], group), &kRun);
    }
    for (int i = 0; i < 3; ++i) stop(watched->api, runs[i]);
    stop(watched->api, group);
    for (int i = 0; i < 3; ++i) kernels(watched, runs[i], 5000 + 2000 * (uint64_t)i);
  }
  stop(watched->api, group_api);
}

struct replay {
  struct watched* watched;
  void* captured;
  int times;
};

static void replay(void* data) {
  const struct replay* replay = data;
  struct watched* watched = replay->watched;
  for (int i = 0; i < replay->times; ++i) {
    void* group = start_group(watched);
    void* run = start_coll(watched, parent_of(watched, replay->captured, group), &kRun);
    stop(watched->api, run);
    stop(watched->api, group);
    kernels(watched, run, 100000 + 3000 * (uint64_t)i);
  }
}

/* Asked once; replayed by another thread, now and long after, with the same parent. */
static void captured(struct watched* watched) {
  start_group_api(watched, true);
  void* parent = call(watched, BYTES / 4, true);
  ask(watched, BYTES);
  start_launch(watched);
  on_another_thread(replay, &(struct replay){watched, parent, REPLAYS});
  /* Round the plugin's memory of runs, where there is one. */
  const int others = (event_mask() & KERNEL_CH) != 0 ? 5000 : 50;
  for (int i = 0; i < others; ++i) {
    void* group = begin_plan(watched);
    stop(watched->api,
         start_coll(watched, parent_of(watched, call(watched, 8, false), group), &kRun));
  }
  on_another_thread(replay, &(struct replay){watched, parent, REPLAYS});
  /* The mask went off meanwhile: the library's slot still names the captured call. */
  void* run = start_coll(watched, parent, &kRun);
  kernels(watched, run, 9000000);
}

static void rest_of_call(void* data) {
  struct replay* state = data;
  ask(state->watched, BYTES);
  void* group = begin_plan(state->watched);
  void* run = start_coll(state->watched, parent_of(state->watched, state->captured, group), &kRun);
  stop(state->watched->api, run);
  kernels(state->watched, run, 50000);
}

/* The caller is gone before the question is asked. */
static void non_blocking(struct watched* watched) {
  void* group_api = start_group_api(watched, false);
  void* parent = call(watched, BYTES / 4, false);
  stop(watched->api, group_api);
  on_another_thread(rest_of_call, &(struct replay){watched, parent, 1});
}

static void odd_kernels(struct watched* watched) {
  const int api = watched->api;
  void* context = watched->context;
  /* Of point-to-point calls, of groups, of nothing. */
  void* p2p = start_p2p(watched);
  CHECK(p2p == NULL, "v%d remembers a point-to-point call", api);
  void* parents[] = {p2p, start_group(watched), call(watched, 4, false), NULL};
  for (int i = 0; i < 4; ++i) {
    void* handle = start_kernel(api, context, parents[i], 0, 70);
    CHECK(handle == NULL, "v%d remembers a kernel of parent %d", api, i);
    stop_kernel(api, handle, 80);
  }
  /* One stop is missing; the other comes twice, and without a stamp. */
  void* run = start_coll(watched, parents[2], &kRun);
  void* one = start_kernel(api, context, run, 0, 100);
  start_kernel(api, context, run, 1, 100);
  record(api, one, KERNEL_CH_STOP, NULL);
  stop_kernel(api, one, 200);
  stop_kernel(api, one, 300);
  start_kernel(api, context, run, 255, 100);
  /* No channels are told, or too many. */
  struct run strange = kRun;
  strange.channels = 0;
  kernels(watched, start_coll(watched, parents[2], &strange), 400);
  strange.channels = 200;
  kernels(watched, start_coll(watched, parents[2], &strange), 500);
}

/* Under PXN another process's operations come here, with that process's pointers. */
static void strangers(struct watched* watched) {
  const int api = watched->api;
  void* garbage[] = {NULL,
                     (void*)8,
                     (void*)0x7f0000001000,
                     (void*)0xffff800000000000,
                     (void*)0x8123456789abcdef,
                     watched,
                     (void*)-1};
  for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); ++i) {
    for (size_t j = 0; j < sizeof(garbage) / sizeof(*garbage); ++j) {
      void* op = start_proxy_op(api, garbage[i], garbage[j], getpid() + 1);
      CHECK(op == NULL, "v%d remembers a proxy operation", api);
      start_kernel(api, garbage[i], garbage[j], 3, 5);
    }
    struct watched stranger = *watched;
    stranger.context = garbage[i];
    const bool watching = g_watching;
    g_watching = false; /* nothing comes of these */
    eager(&stranger);
    g_watching = watching;
    profiler_state state = {.stamp = 9};
    record(api, garbage[i], KERNEL_CH_STOP, &state);
    stop(api, garbage[i]);
    if (garbage[i] != NULL) profiler_close(api, garbage[i]);
  }
}

static void what_is_new(struct watched* watched) {
  const int api = watched->api;
  const int bits = api <= 4 ? 8 : 64;
  const uint64_t known = GROUP | COLL | (has_calls(api) ? GROUP_API | COLL_API | KERNEL_LAUNCH : 0);
  for (int bit = 0; bit < bits; ++bit) {
    const uint64_t type = UINT64_C(1) << bit;
    if ((type & known) != 0) continue;
    void* handle = start_nonsense(api, watched->context, &watched, type);
    CHECK(handle == NULL, "v%d remembers an event of bit %d", api, bit);
  }
  const struct run strange[] = {
      {"AllReduce", "ncclFloat32", "NewAlgo", "SIMPLE", 10, 2, false},
      {"NewCollective", "ncclFloat3", "RING", "NewProto", 10, 2, false},
      {"Invalid", "Unknown", "Unknown", "Unknown", SIZE_MAX, 2, true},
      {NULL, NULL, NULL, NULL, 0, 2, true},
  };
  for (int i = 0; i < 4; ++i) {
    start_coll_api(watched, strange[i].func, strange[i].count, strange[i].type, false);
    kernels(watched, start_coll(watched, NULL, &strange[i]), 100);
  }
  for (int state = -2; state < 40; ++state) {
    profiler_state arguments = {.stamp = 5};
    record(api, watched->context, state, &arguments);
    record(api, watched->context, state, NULL);
  }
}

/* Threads that serve several communicators go on after one has ended. */
static void after_the_end(struct watched* watched) {
  void* parent = call(watched, 8, false);
  void* group = begin_plan(watched);
  void* run = start_coll(watched, parent_of(watched, parent, group), &kRun);
  void* one = start_kernel(watched->api, watched->context, run, 0, 100);
  watched_close(watched);
  stop_kernel(watched->api, one, 200);
  void* two = start_kernel(watched->api, watched->context, run, 1, 100);
  stop_kernel(watched->api, two, 200);
  stop(watched->api, run);
  CHECK(start_coll(watched, parent, &kRun) == NULL, "v%d: a run of a dead communicator",
        watched->api);
  CHECK(start_coll_api(watched, "AllReduce", 1, "ncclInt8", false) == NULL,
        "v%d: a call of a dead communicator", watched->api);
  profiler_close(watched->api, watched->context);
}

static void check_mask(int api) {
  const int allowed = has_calls(api) ? COLL | KERNEL_CH | COLL_API | KERNEL_LAUNCH
                                     : GROUP | COLL | (has_times(api) ? KERNEL_CH : 0);
  CHECK((event_mask() & ~allowed) == 0, "v%d asks for 0x%x, of which 0x%x is too much", api,
        event_mask(), event_mask() & ~allowed);
  if (g_watching) {
    CHECK((event_mask() & COLL) != 0, "v%d asks for 0x%x: no runs", api, event_mask());
  } else {
    CHECK(event_mask() == 0, "v%d asks for 0x%x at rest", api, event_mask());
  }
}

static void all_orders(int api) {
  struct watched watched = watched_open(api, RANKS, 1);
  CHECK((watched.context != NULL) == g_watching, "v%d: context %p", api, watched.context);
  check_mask(api);
  eager(&watched);
  group_of_three(&watched, false);
  group_of_three(&watched, true);
  eager(&watched);
  non_blocking(&watched);
  odd_kernels(&watched);
  strangers(&watched);
  what_is_new(&watched);
  check_mask(api);
  captured(&watched);
  eager(&watched);
  check_mask(api);
  after_the_end(&watched);
  CHECK(event_mask() == 0, "v%d leaves a mask of 0x%x", api, event_mask());
}

static int count_text(const char* text, const char* wanted) {
  int count = 0;
  for (; (text = strstr(text, wanted)) != NULL; ++text) ++count;
  return count;
}

/* A symmetric kernel: no tuner has chosen it, and none is told to have run. */
static void symmetric(void* data) {
  const int api = *(int*)data;
  char name[32];
  snprintf(name, sizeof(name), "symmetric%d.jsonl", api);
  const char* path = temp_path(name);
  env_set("DIAPASON_JOURNAL", path);
  struct watched watched = watched_open(api, RANKS, 1);
  void* parent = call(&watched, BYTES / 4, false);
  void* group = begin_plan(&watched);
  const struct run run = {"AllGather", "ncclInt8", "AGxLL_R", "", BYTES, 0, true};
  void* handle = start_coll(&watched, parent_of(&watched, parent, group), &run);
  CHECK(handle == NULL, "v%d times a symmetric kernel", api);
  watched_close(&watched);
  char* journal = read_file(path);
  if (CHECK(journal != NULL, "no %s", path)) {
    CHECK(count_text(journal, "\"type\":\"bypassed\"") == 1, "v%d: %s", api, journal);
    CHECK(count_text(journal, "\"type\":\"run\"") == 0, "v%d: %s", api, journal);
  }
  free(journal);
}

int main(int count, char** arguments) {
  if (count != 2) give_up("usage: profiler_orders PLUGIN");
  host_load(arguments[1]);
  profiler_load();
  for (int api = 2; api <= PROFILER_NEWEST_API; ++api) { /* v1 has only numbers */
    case_begin("profiler v%d, a symmetric kernel", api);
    child_succeeds("symmetric", 10, symmetric, &api); /* a process has one journal */
  }
  for (int api = PROFILER_OLDEST_API; api <= PROFILER_NEWEST_API; ++api) {
    case_begin("profiler v%d, nobody interested", api);
    use_policy("allreduce,0,999999,ring,simple,-1,-1,-1,-1,-1\n");
    g_watching = false;
    all_orders(api);
    case_begin("profiler v%d, off", api);
    env_set("DIAPASON_MODE", "off");
    all_orders(api);
    case_begin("profiler v%d, with a journal", api);
    use_policy("allreduce,0,999999,ring,simple,-1,-1,-1,-1,-1\n");
    env_set("DIAPASON_JOURNAL", temp_path("journal.jsonl"));
    g_watching = true;
    all_orders(api);
    env_set("DIAPASON_JOURNAL_TIMES", "1");
    all_orders(api);
  }
  return checks_report("profiler_orders");
}
