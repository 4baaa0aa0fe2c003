/* Built with RECORDING_API=1 to 7. Handles and contexts are real addresses, never reused. */
#define _GNU_SOURCE
#include "recording_profiler.h"

#include <pthread.h>
#include <string.h>

#include "profiler_abi.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if RECORDING_API >= 5 && RECORDING_API <= 6
typedef profiler_event_v5 event_type;
#else
typedef JOIN(profiler_event_v, RECORDING_API) event_type;
#endif

enum { EVENTS = RECORDS, CONTEXTS = 1 << 12 };
static struct recording g_recording;
static char g_events[EVENTS];     /* the address of a handle is its number */
static char g_contexts[CONTEXTS]; /* likewise */
static int g_next_event = 1;
static int g_next_context = 1;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

struct recording* recording_of(void) {
  return &g_recording;
}

void recording_reset(void) {
  pthread_mutex_lock(&g_lock);
  g_recording.count = 0;
  g_next_event = 1;
  g_next_context = 1;
  pthread_mutex_unlock(&g_lock);
}

static int number_of(const void* pointer, const char* first, int count) {
  if (pointer == NULL) return 0;
  const uintptr_t offset = (uintptr_t)pointer - (uintptr_t)first;
  return offset < (uintptr_t)count ? (int)offset : -1;
}

static void add(struct record record) {
  if (g_recording.count < RECORDS) g_recording.records[g_recording.count++] = record;
}

static uint64_t mix(uint64_t digest, uint64_t value) {
  return (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (digest >> 29);
}

#if RECORDING_API > 1
static uint64_t mix_text(uint64_t digest, const char* text) {
  if (text == NULL) return mix(digest, 1);
  for (; *text != '\0'; ++text) digest = mix(digest, (uint64_t)*text + 2);
  return mix(digest, 0);
}
#define TEXT(field) digest = mix_text(digest, event->field)
#else
#define TEXT(field) NUMBER(field)
#endif
#define NUMBER(field) digest = mix(digest, (uint64_t)(event->field))
#define ADDRESS(field) digest = mix(digest, (uint64_t)(uintptr_t)(event->field))

static uint64_t digest_coll(const event_type* event) {
  uint64_t digest = 17;
  NUMBER(coll.sequence), NUMBER(coll.count), NUMBER(coll.root), NUMBER(coll.warps);
  ADDRESS(coll.send), ADDRESS(coll.receive);
  TEXT(coll.func), TEXT(coll.datatype), TEXT(coll.algorithm), TEXT(coll.protocol);
#if RECORDING_API <= 3
  ADDRESS(coll.name), NUMBER(coll.comm_hash), NUMBER(coll.most_channels);
#else
  NUMBER(coll.channels);
#endif
#if RECORDING_API <= 2
  NUMBER(coll.traffic_bytes);
#endif
#if RECORDING_API == 1
  NUMBER(coll.op), NUMBER(coll.is_collnet), NUMBER(coll.is_nvls);
#endif
#if RECORDING_API >= 7
  TEXT(coll.kernel_variant), NUMBER(coll.symmetric), NUMBER(coll.user_tag);
#endif
  return digest;
}

static uint64_t digest_p2p(const event_type* event) {
  uint64_t digest = 19;
  ADDRESS(p2p.buffer), NUMBER(p2p.count), NUMBER(p2p.peer);
  TEXT(p2p.func), TEXT(p2p.datatype);
#if RECORDING_API <= 3
  ADDRESS(p2p.name), NUMBER(p2p.comm_hash);
#else
  NUMBER(p2p.channels);
#endif
#if RECORDING_API >= 7
  NUMBER(p2p.user_tag);
#endif
  return digest;
}

#if RECORDING_API >= 5
static uint64_t digest_call(const event_type* event) {
  uint64_t digest = 23;
  if (event->type == GROUP_API) NUMBER(group_api.captured), NUMBER(group_api.depth);
  if (event->type == KERNEL_LAUNCH) ADDRESS(kernel_launch.stream);
  if (event->type == COLL_API) {
    TEXT(coll_api.func), TEXT(coll_api.datatype), ADDRESS(coll_api.stream);
    NUMBER(coll_api.count), NUMBER(coll_api.root), NUMBER(coll_api.captured);
  }
  if (event->type == P2P_API) {
    TEXT(p2p_api.func), TEXT(p2p_api.datatype), ADDRESS(p2p_api.stream);
    NUMBER(p2p_api.count), NUMBER(p2p_api.captured);
  }
#if RECORDING_API >= 7
  if (event->type == COLL_API) NUMBER(coll_api.user_tag);
  if (event->type == P2P_API) NUMBER(p2p_api.user_tag);
  if (event->type == CE_COLL) {
    NUMBER(ce_coll.sequence), TEXT(ce_coll.func), NUMBER(ce_coll.user_tag), ADDRESS(ce_coll.stream);
  }
  if (event->type == CE_SYNC) NUMBER(ce_sync.complete), NUMBER(ce_sync.ranks);
  if (event->type == KERNEL_PHASE) {
    NUMBER(kernel_phase.channel), NUMBER(kernel_phase.phase), NUMBER(kernel_phase.stamp);
    TEXT(kernel_phase.name);
  }
#endif
  return digest;
}
#endif

static uint64_t digest_of(const event_type* event) {
  uint64_t digest = 29;
  switch (event->type) {
    case COLL:
      return mix(digest_coll(event), (uint64_t)event->rank);
    case P2P:
      return mix(digest_p2p(event), (uint64_t)event->rank);
    case PROXY_OP:
      NUMBER(proxy_op.pid), NUMBER(proxy_op.channel), NUMBER(proxy_op.peer);
      NUMBER(proxy_op.steps), NUMBER(proxy_op.chunk_bytes), NUMBER(proxy_op.is_send);
      return mix(digest, (uint64_t)event->rank);
    case PROXY_STEP:
      NUMBER(proxy_step.step);
      return mix(digest, (uint64_t)event->rank);
    case NET_PLUGIN:
      NUMBER(net_plugin.id), ADDRESS(net_plugin.data);
      return digest;
#if RECORDING_API >= 3
    case KERNEL_CH:
      NUMBER(kernel_ch.channel);
#if RECORDING_API >= 4
      NUMBER(kernel_ch.stamp);
#endif
      return digest;
#endif
    default:
#if RECORDING_API >= 5
      return digest_call(event);
#else
      return digest;
#endif
  }
}

static int start(void* context, void** handle, event_type* event) {
  pthread_mutex_lock(&g_lock);
  struct record record = {R_START, (int)event->type, 0, 0, 0, 0, digest_of(event)};
  record.parent = number_of(event->parent, g_events, EVENTS);
#if RECORDING_API >= 5
  if (event->type == COLL) record.group = number_of(event->coll.parent_group, g_events, EVENTS);
  if (event->type == P2P) record.group = number_of(event->p2p.parent_group, g_events, EVENTS);
#endif
  record.context = number_of(context, g_contexts, CONTEXTS);
  if ((g_recording.drop & (int)event->type) == 0 && g_next_event < EVENTS) {
    record.event = g_next_event++;
    *handle = &g_events[record.event];
  }
  add(record);
  pthread_mutex_unlock(&g_lock);
  return 0;
}

static int stop(void* handle) {
  pthread_mutex_lock(&g_lock);
  add((struct record){R_STOP, 0, number_of(handle, g_events, EVENTS), 0, 0, 0, 0});
  pthread_mutex_unlock(&g_lock);
  return 0;
}

/* Only arguments that belong to the state: others are whatever the library's stack has. */
static int record_state(void* handle, int state, profiler_state* arguments) {
  pthread_mutex_lock(&g_lock);
  struct record record = {R_STATE, state, number_of(handle, g_events, EVENTS), 0, 0, 0, 0};
  if (arguments != NULL) {
    if (state == CTRL_IDLE) record.digest = (uint64_t)arguments->appended;
    if (RECORDING_API >= 4 && (state == STEP_SEND_WAIT || state == NET_UPDATE ||
                               state == KERNEL_CH_STOP || state == PHASE_STOP)) {
      record.digest = arguments->stamp;
    }
  }
  add(record);
  pthread_mutex_unlock(&g_lock);
  return 0;
}

static int finalize(void* context) {
  pthread_mutex_lock(&g_lock);
  add((struct record){R_END, 0, 0, 0, 0, number_of(context, g_contexts, CONTEXTS), 0});
  pthread_mutex_unlock(&g_lock);
  return 0;
}

static int init(void** context, int* mask, uint64_t digest) {
  pthread_mutex_lock(&g_lock);
  const int number = g_next_context++;
  *context = &g_contexts[number % CONTEXTS];
  /* The library's own word, which other communicators' calls read meanwhile. */
  __atomic_store_n(mask, g_recording.mask, __ATOMIC_RELAXED);
  g_recording.word = mask;
  add((struct record){R_INIT, 0, 0, 0, 0, number % CONTEXTS, digest});
  const int result = g_recording.fail_init;
  pthread_mutex_unlock(&g_lock);
  return result;
}

#if RECORDING_API <= 3
static int init_this(void** context, int* mask) { return init(context, mask, 0); }
#else
static uint64_t digest_comm(uint64_t id, int nodes, int ranks, int rank, tuner_logger logger) {
  const uint64_t digest = mix(mix(id, (uint64_t)nodes), (uint64_t)ranks);
  return mix(mix(digest, (uint64_t)rank), (uint64_t)(uintptr_t)logger);
}
#if RECORDING_API == 4
static int init_this(void** context, int* mask, const char* name, uint64_t hash, int nodes,
                     int ranks, int rank, tuner_logger logger) {
  return init(context, mask, mix_text(digest_comm(hash, nodes, ranks, rank, logger), name));
}
#else
static int init_this(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks,
                     int rank, tuner_logger logger) {
  return init(context, mask, mix_text(digest_comm(id, nodes, ranks, rank, logger), name));
}
#endif
#endif

extern const profiler_any JOIN(ncclProfiler_v, RECORDING_API);
const profiler_any JOIN(ncclProfiler_v, RECORDING_API) = {
    "recording", (void*)init_this, (int (*)(void*, void**, void*))start,
    stop,        record_state,     finalize};
