#define _GNU_SOURCE
#include "played_events.h"

#include <string.h>
#include <unistd.h>

#include "harness.h"

static int g_buffer; /* any address */

bool told(int mask, int type) {
  const int network = PROXY_OP | PROXY_STEP | NET_PLUGIN;
  const int below = network | KERNEL_CH;
  const int ce = CE_COLL | CE_SYNC | CE_BATCH;
  switch (type) {
    case GROUP_API:
      return (mask & (GROUP_API | COLL_API | P2P_API | KERNEL_LAUNCH | GROUP | COLL | P2P | below |
                      ce)) != 0;
    case COLL_API:
      return (mask & (COLL_API | COLL | below | ce)) != 0;
    case P2P_API:
      return (mask & (P2P_API | P2P | below)) != 0;
    case GROUP:
      return (mask & (GROUP | COLL | P2P | below)) != 0;
    case COLL:
      return (mask & (COLL | below)) != 0;
    case P2P:
      return (mask & (P2P | below)) != 0;
    case PROXY_OP:
      return (mask & network) != 0;
    case PROXY_STEP:
      return (mask & (PROXY_STEP | NET_PLUGIN)) != 0;
    case CE_COLL:
      return (mask & ce) != 0;
    default:
      return (mask & type) != 0;
  }
}

static int newest_type(int api) {
  static const int newest[] = {0,          PROXY_CTRL,    PROXY_CTRL, NET_PLUGIN,
                               NET_PLUGIN, KERNEL_LAUNCH, CE_BATCH,   KERNEL_PHASE};
  return newest[api];
}

static const char* comm_name(const struct player* player) { return player->named ? "world" : NULL; }
static uint64_t comm_hash(const struct player* player) { return player->named ? 99 : 0; }

/* The descriptor of an old version, from the newest one. */
#define OLD_HEAD(old)                \
  memset(&(old), 0, sizeof(old));    \
  (old).type = (uint8_t)event->type; \
  (old).parent = event->parent;      \
  (old).rank = event->rank

#define OLD_COLL(old)                         \
  (old).coll.sequence = event->coll.sequence; \
  (old).coll.send = event->coll.send;         \
  (old).coll.receive = event->coll.receive;   \
  (old).coll.count = event->coll.count;       \
  (old).coll.root = event->coll.root;         \
  (old).coll.warps = event->coll.warps

#define OLD_COLL_NAMES(old)                     \
  (old).coll.func = event->coll.func;           \
  (old).coll.datatype = event->coll.datatype;   \
  (old).coll.algorithm = event->coll.algorithm; \
  (old).coll.protocol = event->coll.protocol

#define OLD_COMM(old, part)            \
  (old).part.name = comm_name(player); \
  (old).part.comm_hash = comm_hash(player)

#define OLD_P2P(old)                    \
  (old).p2p.buffer = event->p2p.buffer; \
  (old).p2p.count = event->p2p.count;   \
  (old).p2p.peer = event->p2p.peer

/* All of them keep network operations, steps and kernels in the same place. */
#define OLD_REST(old)                                                             \
  if (event->type != COLL && event->type != P2P) {                                \
    memcpy((char*)&(old) + 24, (const char*)event + 24, sizeof(event->proxy_op)); \
  }

static void tell(const struct player* player, void* context, void** handle,
                 const profiler_event_v7* event) {
  const profiler_any* profiler = player->profiler;
  if (player->api == 1) {
    profiler_event_v1 old;
    OLD_HEAD(old);
    OLD_REST(old);
    if (event->type == COLL) {
      OLD_COLL(old);
      OLD_COMM(old, coll);
      old.coll.most_channels = event->coll.channels;
      old.coll.func = ALLREDUCE, old.coll.datatype = 7;
      old.coll.algorithm = RING, old.coll.protocol = SIMPLE;
    } else if (event->type == P2P) {
      OLD_P2P(old);
      OLD_COMM(old, p2p);
      old.p2p.func = 6, old.p2p.datatype = 0;
    }
    profiler->start_event(context, handle, &old);
  } else if (player->api == 2) {
    profiler_event_v2 old;
    OLD_HEAD(old);
    OLD_REST(old);
    if (event->type == COLL) {
      OLD_COLL(old);
      OLD_COMM(old, coll);
      OLD_COLL_NAMES(old);
      old.coll.most_channels = event->coll.channels;
    } else if (event->type == P2P) {
      OLD_P2P(old);
      OLD_COMM(old, p2p);
      old.p2p.func = event->p2p.func, old.p2p.datatype = event->p2p.datatype;
    }
    profiler->start_event(context, handle, &old);
  } else if (player->api == 3) {
    profiler_event_v3 old;
    OLD_HEAD(old);
    OLD_REST(old);
    if (event->type == COLL) {
      OLD_COLL(old);
      OLD_COMM(old, coll);
      OLD_COLL_NAMES(old);
      old.coll.most_channels = event->coll.channels;
    } else if (event->type == P2P) {
      OLD_P2P(old);
      OLD_COMM(old, p2p);
      old.p2p.func = event->p2p.func, old.p2p.datatype = event->p2p.datatype;
    }
    profiler->start_event(context, handle, &old);
  } else if (player->api == 4) {
    profiler_event_v4 old;
    OLD_HEAD(old);
    OLD_REST(old);
    if (event->type == COLL) {
      OLD_COLL(old);
      OLD_COLL_NAMES(old);
      old.coll.channels = event->coll.channels;
    } else if (event->type == P2P) {
      OLD_P2P(old);
      old.p2p.func = event->p2p.func, old.p2p.datatype = event->p2p.datatype;
      old.p2p.channels = event->p2p.channels;
    }
    profiler->start_event(context, handle, &old);
  } else if (player->api <= 6) {
    profiler_event_v5 old;
    memcpy(&old, event, sizeof(old));
    profiler->start_event(context, handle, &old);
  } else {
    profiler_event_v7 whole = *event;
    profiler->start_event(context, handle, &whole);
  }
}

/* One event, if this version has it and the mask asks for it. */
static void* start_in(const struct player* player, void* context, int mask,
                      profiler_event_v7 event) {
  void* handle = NULL;
  if ((int)event.type > newest_type(player->api) || !told(mask, (int)event.type)) return NULL;
  tell(player, context, &handle, &event);
  return handle;
}
static void* start(const struct player* player, int mask, profiler_event_v7 event) {
  return start_in(player, player->context, mask, event);
}

static void stop(const struct player* player, void* handle) {
  if (handle != NULL) player->profiler->stop_event(handle);
}

static void state(const struct player* player, void* handle, int number, uint64_t value) {
  profiler_state arguments;
  memset(&arguments, 0, sizeof(arguments));
  arguments.stamp = value;
  if (handle != NULL) player->profiler->record_state(handle, number, &arguments);
}

static int read_word(const struct player* player) {
  return __atomic_load_n(player->word, __ATOMIC_RELAXED);
}

void player_open(struct player* player, uint64_t id, int rank, tuner_logger logger) {
  void* init = player->profiler->init;
  const char* name = comm_name(player);
  player->context = NULL;
  int result = 0;
  if (player->api <= 3) {
    result = ((profiler_init_v1)init)(&player->context, player->word);
  } else if (player->api == 4) {
    result = ((profiler_init_v4)init)(&player->context, player->word, name, id, 2, 8, rank, logger);
  } else {
    result = ((profiler_init_v5)init)(&player->context, id, player->word, name, 2, 8, rank, logger);
  }
  CHECK(result == 0, "init returned %d", result);
  /* As the library does for its own word. */
  if (player->api >= 7 && (read_word(player) & KERNEL_PHASE) != 0) {
    __atomic_fetch_or(player->word, KERNEL_CH, __ATOMIC_RELAXED);
  }
}

void player_close(struct player* player) {
  if (player->context != NULL) player->profiler->finalize(player->context);
}

static profiler_event_v7 coll_event(struct player* player, void* parent, void* group) {
  profiler_event_v7 event = {.type = COLL, .parent = player->api >= 5 ? parent : group, .rank = 3};
  event.coll.sequence = player->sequence;
  event.coll.func = "AllReduce", event.coll.datatype = "ncclFloat32";
  event.coll.send = &g_buffer, event.coll.receive = (char*)&g_buffer + 1;
  event.coll.count = 1000 + player->sequence, event.coll.root = 2;
  event.coll.channels = 2, event.coll.warps = 17;
  event.coll.algorithm = "RING", event.coll.protocol = "SIMPLE";
  event.coll.parent_group = group;
  event.coll.kernel_variant = "variant", event.coll.symmetric = false, event.coll.user_tag = 77;
  return event;
}

static profiler_event_v7 p2p_event(const struct player* player, void* parent, void* group) {
  profiler_event_v7 event = {.type = P2P, .parent = player->api >= 5 ? parent : group, .rank = 3};
  event.p2p.func = "Send", event.p2p.datatype = "ncclInt8";
  event.p2p.buffer = &g_buffer, event.p2p.count = 12, event.p2p.peer = 5;
  event.p2p.channels = 1, event.p2p.parent_group = group, event.p2p.user_tag = 78;
  return event;
}

static profiler_event_v7 call_event(void* group, bool captured) {
  profiler_event_v7 event = {.type = COLL_API, .parent = group};
  event.coll_api.func = "AllReduce", event.coll_api.datatype = "ncclFloat32";
  event.coll_api.count = 1000, event.coll_api.root = 2, event.coll_api.stream = &g_buffer;
  event.coll_api.captured = captured, event.coll_api.user_tag = 77;
  return event;
}

/* Up to 2.27 a task is told only if its plan has a handle. */
static bool tells_tasks(const struct player* player, const void* plan) {
  return player->api >= 5 || plan != NULL;
}

struct played_call play_call(struct player* player) {
  struct played_call call = {.player = player, .mask = read_word(player)};
  call.stamp = 1000 * ++player->sequence; /* counted whether or not it is told */
  profiler_event_v7 event = {.type = GROUP_API, .group_api = {false, 1}};
  void* group = start(player, call.mask, event);
  if (group != NULL) player->profiler->record_state(group, GROUP_START_STOP, NULL);
  void* coll_api = start(player, call.mask, call_event(group, false));
  stop(player, coll_api);
  profiler_event_v7 p2p = {.type = P2P_API, .parent = group};
  p2p.p2p_api.func = "Send", p2p.p2p_api.datatype = "ncclInt8", p2p.p2p_api.count = 12;
  void* p2p_api = start(player, call.mask, p2p);
  stop(player, p2p_api);
  profiler_event_v7 launch = {.type = KERNEL_LAUNCH, .parent = group};
  launch.kernel_launch.stream = &g_buffer;
  stop(player, start(player, call.mask, launch));
  profiler_event_v7 plan_event = {.type = GROUP};
  void* plan = start(player, call.mask, plan_event);
  if (tells_tasks(player, plan)) {
    call.coll = start(player, call.mask, coll_event(player, coll_api, plan));
    call.p2p = start(player, call.mask, p2p_event(player, p2p_api, plan));
  }
  stop(player, call.coll);
  stop(player, call.p2p);
  stop(player, plan);
  stop(player, group);
  return call;
}

static void play_network(const struct played_call* call, void* task) {
  const struct player* player = call->player;
  /* Of another process nothing but numbers is known here. */
  void* context = player->other_pid ? (void*)0x7f1234567000 : player->context;
  void* parent = player->other_pid ? (void*)0x7f1234568000 : task;
  profiler_event_v7 op = {.type = PROXY_OP, .parent = parent, .rank = 4};
  op.proxy_op.pid = getpid() + (player->other_pid ? 1 : 0);
  op.proxy_op.channel = 1, op.proxy_op.peer = 6, op.proxy_op.steps = 2;
  op.proxy_op.chunk_bytes = 512, op.proxy_op.is_send = 1;
  void* handle = start_in(player, context, call->mask, op);
  if (player->api >= 4) state(player, handle, OP_IN_PROGRESS, 0);
  for (int i = 0; i < 2; ++i) {
    profiler_event_v7 step = {.type = PROXY_STEP, .parent = handle, .rank = 4};
    step.proxy_step.step = i;
    void* one = start_in(player, context, call->mask, step);
    state(player, one, STEP_SEND_WAIT, 100);
    profiler_event_v7 net = {.type = NET_PLUGIN, .parent = one, .rank = 4};
    net.net_plugin.id = 65537, net.net_plugin.data = &g_buffer;
    void* in_net = start_in(player, context, call->mask, net);
    if (player->api >= 4) state(player, in_net, NET_UPDATE, 7);
    stop(player, in_net);
    stop(player, one);
  }
  stop(player, handle);
}

static void play_kernel(const struct played_call* call, void* task, int channel) {
  const struct player* player = call->player;
  profiler_event_v7 kernel = {.type = KERNEL_CH, .parent = task};
  kernel.kernel_ch.channel = (uint8_t)channel;
  kernel.kernel_ch.stamp = call->stamp + (uint64_t)channel;
  void* handle = start(player, call->mask, kernel);
  profiler_event_v7 phase = {.type = KERNEL_PHASE, .parent = handle};
  phase.kernel_phase.channel = (uint8_t)channel, phase.kernel_phase.phase = 1;
  phase.kernel_phase.name = "compute", phase.kernel_phase.stamp = call->stamp + 5;
  void* in_phase = start(player, call->mask, phase);
  state(player, in_phase, PHASE_STOP, call->stamp + 8);
  stop(player, in_phase);
  if (player->api >= 4) state(player, handle, KERNEL_CH_STOP, call->stamp + 10);
  stop(player, handle);
}

void play_rest(const struct played_call* call) {
  play_network(call, call->coll);
  for (int channel = 0; channel < 2; ++channel) play_kernel(call, call->coll, channel);
  play_kernel(call, call->p2p, 0);
}

void* play_capture(struct player* player) {
  const int mask = read_word(player);
  profiler_event_v7 event = {.type = GROUP_API, .group_api = {true, 1}};
  void* group = start(player, mask, event);
  void* captured = start(player, mask, call_event(group, true));
  stop(player, captured);
  stop(player, group);
  return captured;
}

void play_replay(struct player* player, void* captured, int mask) {
  struct played_call call = {.player = player, .mask = mask, .stamp = 5};
  profiler_event_v7 plan_event = {.type = GROUP};
  void* plan = start(player, mask, plan_event);
  if (tells_tasks(player, plan))
    call.coll = start(player, mask, coll_event(player, captured, plan));
  stop(player, call.coll);
  stop(player, plan);
  play_kernel(&call, call.coll, 0);
}

void play_copy_engine(struct player* player) {
  const int mask = read_word(player);
  profiler_event_v7 event = {.type = GROUP_API, .group_api = {false, 1}};
  void* group = start(player, mask, event);
  void* coll_api = start(player, mask, call_event(group, false));
  stop(player, coll_api);
  profiler_event_v7 ce = {.type = CE_COLL, .parent = coll_api, .rank = 3};
  ce.ce_coll.func = "AllGather", ce.ce_coll.sequence = 4, ce.ce_coll.user_tag = 5;
  void* coll = start(player, mask, ce);
  if (coll != NULL) {
    profiler_event_v7 sync = {.type = CE_SYNC, .parent = coll, .rank = 3};
    sync.ce_sync.complete = true, sync.ce_sync.ranks = 8;
    stop(player, start(player, mask, sync));
  }
  stop(player, coll);
  stop(player, group);
}

void play_control(struct player* player) {
  profiler_event_v7 event = {.type = PROXY_CTRL};
  void* handle = start(player, read_word(player), event);
  state(player, handle, CTRL_IDLE, 3);
  stop(player, handle);
}
