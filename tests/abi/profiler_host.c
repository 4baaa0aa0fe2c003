#define _GNU_SOURCE
#include "profiler_host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

static const profiler_any* g_profilers[PROFILER_NEWEST_API + 1];
static int g_mask; /* one for the process, as in the library */

int event_mask(void) { return __atomic_load_n(&g_mask, __ATOMIC_RELAXED); }

void profiler_load(void) {
  for (int api = PROFILER_OLDEST_API; api <= PROFILER_NEWEST_API; ++api) {
    char name[32];
    snprintf(name, sizeof(name), PROFILER_SYMBOL_FORMAT, api);
    g_profilers[api] = dlsym(host.handle, name);
    if (g_profilers[api] == NULL) give_up("the plugin has no %s", name);
    CHECK(strcmp(g_profilers[api]->name, "diapason") == 0, "%s is called %s", name,
          g_profilers[api]->name);
  }
}

bool has_calls(int api) { return api >= 5; }
bool has_times(int api) { return api >= 4; }

void* profiler_open(int api, uint64_t id, size_t ranks, int rank) {
  void* context = NULL;
  const profiler_any* profiler = g_profilers[api];
  int result = TUNER_INTERNAL_ERROR;
  if (api <= 3) {
    result = ((profiler_init_v1)profiler->init)(&context, &g_mask);
  } else if (api == 4) {
    result = ((profiler_init_v4)profiler->init)(&context, &g_mask, "world", id, 1, (int)ranks, rank,
                                                host.logger);
  } else {
    result = ((profiler_init_v5)profiler->init)(&context, id, &g_mask, NULL, 1, (int)ranks, rank,
                                                host.logger);
  }
  CHECK(result == TUNER_SUCCESS, "profiler v%d init returned %d", api, result);
  return context;
}

void profiler_close(int api, void* context) {
  const int result = g_profilers[api]->finalize(context);
  CHECK(result == TUNER_SUCCESS, "profiler v%d finalize returned %d", api, result);
}

/* The newest tuner of the releases that load this profiler: 2.23, 2.24, 2.26, 2.27, 2.28, 2.30,
 * 2.31. */
static int tuner_beside(int profiler) {
  static const int tuners[] = {0, 3, 4, 4, 4, 5, 6, 6};
  return tuners[profiler];
}

struct watched watched_open(int api, size_t ranks, int rank) {
  struct watched watched = {.api = api, .ranks = ranks};
  watched.context = profiler_open(api, COMM_ID, ranks, rank);
  watched.tuner = comm_open(tuner_beside(api), 1, ranks);
  return watched;
}

void watched_close(struct watched* watched) {
  comm_close(&watched->tuner);
  profiler_close(watched->api, watched->context);
}

static void* start(int api, void* context, void* event) {
  void* handle = &g_mask; /* slots of the library keep their last value */
  const int result = g_profilers[api]->start_event(context, &handle, event);
  CHECK(result == TUNER_SUCCESS, "profiler v%d start returned %d", api, result);
  CHECK(handle != &g_mask, "profiler v%d has not written the handle", api);
  return handle;
}

/* v5 and v6 are the beginning of v7. */
static void* start_new(int api, void* context, const profiler_event_v7* event) {
  if (api >= 7) {
    profiler_event_v7 whole = *event;
    return start(api, context, &whole);
  }
  profiler_event_v5 beginning;
  memcpy(&beginning, event, sizeof(beginning));
  return start(api, context, &beginning);
}

void stop(int api, void* handle) {
  if (handle == NULL) return; /* as the library does */
  const int result = g_profilers[api]->stop_event(handle);
  CHECK(result == TUNER_SUCCESS, "profiler v%d stop returned %d", api, result);
}

void record(int api, void* handle, int state, profiler_state* arguments) {
  if (handle == NULL) return;
  const int result = g_profilers[api]->record_state(handle, state, arguments);
  CHECK(result == TUNER_SUCCESS, "profiler v%d record returned %d", api, result);
}

void* start_group_api(const struct watched* watched, bool captured) {
  if (!has_calls(watched->api)) return NULL;
  profiler_event_v7 event = {.type = GROUP_API, .group_api = {captured, 1}};
  return start_new(watched->api, watched->context, &event);
}

void* start_coll_api(const struct watched* watched, const char* func, size_t count,
                     const char* type, bool captured) {
  if (!has_calls(watched->api)) return NULL;
  profiler_event_v7 event = {.type = COLL_API};
  event.coll_api.func = func;
  event.coll_api.count = count;
  event.coll_api.datatype = type;
  event.coll_api.captured = captured;
  return start_new(watched->api, watched->context, &event);
}

void start_launch(const struct watched* watched) {
  if (!has_calls(watched->api)) return;
  profiler_event_v7 event = {.type = KERNEL_LAUNCH};
  stop(watched->api, start_new(watched->api, watched->context, &event));
}

/* Descriptors of v4 come from the library's stack, and are not cleared. */
#define OLD_EVENT(version, name, kind)                  \
  profiler_event_v##version name;                       \
  memset(&name, version == 4 ? 0x5a : 0, sizeof(name)); \
  name.type = (kind)

void* start_group(const struct watched* watched) {
  return start_nonsense(watched->api, watched->context, NULL, GROUP); /* nothing else is told */
}

const struct run kRun = {"AllReduce", "ncclFloat32", "RING", "SIMPLE", 1024, 2, false};

#define FILL_COLL(event)                       \
  (event).parent = parent;                     \
  (event).rank = 1;                            \
  (event).coll.sequence = watched->sequence++; \
  (event).coll.count = run->count

#define FILL_NAMES(event)                  \
  (event).coll.func = run->func;           \
  (event).coll.datatype = run->type;       \
  (event).coll.algorithm = run->algorithm; \
  (event).coll.protocol = run->protocol

void* start_coll(struct watched* watched, void* parent, const struct run* run) {
  switch (watched->api) {
    case 1: {
      OLD_EVENT(1, event, COLL);
      FILL_COLL(event);
      event.coll.func = ALLREDUCE;
      event.coll.datatype = 7;
      event.coll.algorithm = RING;
      event.coll.protocol = SIMPLE;
      event.coll.most_channels = (uint8_t)run->channels;
      return start(1, watched->context, &event);
    }
    case 2: {
      OLD_EVENT(2, event, COLL);
      FILL_COLL(event);
      FILL_NAMES(event);
      return start(2, watched->context, &event);
    }
    case 3: {
      OLD_EVENT(3, event, COLL);
      FILL_COLL(event);
      FILL_NAMES(event);
      return start(3, watched->context, &event);
    }
    case 4: {
      OLD_EVENT(4, event, COLL);
      FILL_COLL(event);
      FILL_NAMES(event);
      event.coll.channels = (uint8_t)run->channels;
      return start(4, watched->context, &event);
    }
    default: {
      profiler_event_v7 event = {.type = COLL};
      FILL_COLL(event);
      FILL_NAMES(event);
      event.coll.channels = (uint8_t)run->channels;
      event.coll.symmetric = run->symmetric;
      return start_new(watched->api, watched->context, &event);
    }
  }
}

void* start_p2p(const struct watched* watched) {
  if (has_calls(watched->api)) {
    profiler_event_v7 call = {.type = P2P_API};
    call.p2p_api.func = "Send";
    stop(watched->api, start_new(watched->api, watched->context, &call));
  }
  return start_nonsense(watched->api, watched->context, NULL, P2P);
}

void* start_kernel(int api, void* context, void* parent, int channel, uint64_t stamp) {
  if (api < 3) return NULL;
  if (api == 3) {
    OLD_EVENT(3, event, KERNEL_CH);
    event.parent = parent;
    event.kernel_ch.channel = (uint8_t)channel;
    return start(api, context, &event);
  }
  if (api == 4) {
    OLD_EVENT(4, event, KERNEL_CH);
    event.parent = parent;
    event.kernel_ch.channel = (uint8_t)channel;
    event.kernel_ch.stamp = stamp;
    return start(api, context, &event);
  }
  profiler_event_v7 event = {.type = KERNEL_CH, .parent = parent};
  event.kernel_ch.channel = (uint8_t)channel;
  event.kernel_ch.stamp = stamp;
  return start_new(api, context, &event);
}

void stop_kernel(int api, void* handle, uint64_t stamp) {
  profiler_state state;
  memset(&state, 0, sizeof(state));
  state.stamp = stamp;
  record(api, handle, KERNEL_CH_STOP, &state);
  stop(api, handle);
}

void* start_nonsense(int api, void* context, void* parent, uint64_t type) {
  if (api <= 4) {
    profiler_event_v2 event; /* the largest of them; all begin alike */
    memset(&event, 0x5a, sizeof(event));
    event.type = (uint8_t)type;
    event.parent = parent;
    return start(api, context, &event);
  }
  profiler_event_v7 event;
  memset(&event, 0x5a, sizeof(event));
  event.type = type;
  event.parent = parent;
  return start_new(api, context, &event);
}

void* start_proxy_op(int api, void* context, void* parent, pid_t pid) {
  if (api <= 4) {
    OLD_EVENT(2, event, PROXY_OP); /* the same place in all of them */
    event.parent = parent;
    event.proxy_op.pid = pid;
    return start(api, context, &event);
  }
  profiler_event_v7 event = {.type = PROXY_OP, .parent = parent};
  event.proxy_op.pid = pid;
  return start_new(api, context, &event);
}

struct errand {
  void (*body)(void*);
  void* argument;
};

static void* run_errand(void* data) {
  const struct errand* errand = data;
  errand->body(errand->argument);
  return NULL;
}

void on_another_thread(void (*body)(void*), void* argument) {
  struct errand errand = {body, argument};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_errand, &errand) != 0) give_up("cannot start a thread");
  pthread_join(thread, NULL);
}
