/* A second profiler beside the plugin: what it is told must equal what it is told alone.
 *
 *   profiler_second PLUGIN FOLDER (of the recording profilers, one for each version) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "host.h"
#include "played_events.h"
#include "recorder.h"

enum { CALLS = 40, THREADS = 4, MANY_CALLS = 300 };

static const char* g_plugin;

/* One child process: a version of the second profiler, a version of the library. */
struct scene {
  int second;
  int library;
  bool journal;
};

static const profiler_any* load_plugin(int api) {
  void* file = dlopen(g_plugin, RTLD_NOW | RTLD_LOCAL);
  if (file == NULL) give_up("%s", dlerror());
  return symbol_of(file, api);
}

static void* tell_rest(void* call) {
  play_rest(call);
  return NULL;
}

/* Kernels and network operations are told by another thread, after the call has ended. */
static void on_another_thread(struct played_call* call) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, tell_rest, call) != 0) give_up("cannot start a thread");
  pthread_join(thread, NULL);
}

static void play_calls(struct player* player, int calls) {
  struct played_call late[4];
  for (int i = 0; i < calls; ++i) {
    struct played_call* call = &late[i % 4];
    if (i >= 4) on_another_thread(call); /* of the call four before */
    *call = play_call(player);
  }
  for (int i = 0; i < 4 && i < calls; ++i) on_another_thread(&late[i]);
}

static void play_everything(struct player* player, bool refuses_operations) {
  player_open(player, 4711, 3, host.logger);
  play_calls(player, CALLS);
  /* The steps of a refused operation of another process cannot be told from garbage: alone a
   * profiler gets them, beside the plugin it does not. */
  player->other_pid = !refuses_operations;
  struct played_call call = play_call(player);
  play_rest(&call);
  player->other_pid = false;
  const int mask = __atomic_load_n(player->word, __ATOMIC_RELAXED);
  void* captured = play_capture(player);
  play_replay(player, captured, mask);
  play_calls(player, CALLS);
  play_replay(player, captured, mask);
  play_copy_engine(player);
  play_control(player);
  player_close(player);
}

static struct kept play_alone(const struct recorder* recorder, int api, bool named) {
  int word = 0;
  struct player player = {
      .api = api, .profiler = recorder->profiler, .word = &word, .named = named};
  play_everything(&player, (recorder->recording->drop & PROXY_OP) != 0);
  return keep(recorder);
}

static struct kept play_beside(const struct recorder* recorder, int library, bool named) {
  static int word; /* the plugin may write to it until the last communicator has ended */
  word = 0;
  struct player player = {
      .api = library, .profiler = load_plugin(library), .word = &word, .named = named};
  play_everything(&player, (recorder->recording->drop & PROXY_OP) != 0);
  CHECK(word == 0, "a mask of 0x%x is left", word);
  return keep(recorder);
}

static void compare_masks(void* data) {
  const struct scene* scene = data;
  const struct recorder recorder = load_recorder(scene->second);
  env_set("DIAPASON_PROFILER_CHAIN", recorder_path(scene->second));
  if (scene->journal) {
    env_set("DIAPASON_JOURNAL", temp_path("second.jsonl"));
    env_set("DIAPASON_JOURNAL_TIMES", "1");
  }
  const bool same = scene->second == scene->library;
  const int masks[] = {COLL | KERNEL_CH,
                       COLL | KERNEL_CH | P2P,
                       0xffff,
                       PROXY_STEP,
                       NET_PLUGIN,
                       KERNEL_LAUNCH,
                       GROUP_API | COLL_API,
                       CE_SYNC,
                       KERNEL_PHASE,
                       PROXY_CTRL,
                       0};
  for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); ++i) {
    /* A bit that its version does not have means nothing, alone or not. */
    recorder.recording->mask = masks[i] & (scene->second >= 7   ? 0xffff
                                           : scene->second == 6 ? 0x7fff
                                           : scene->second == 5 ? 0xfff
                                           : scene->second >= 3 ? 0xff
                                                                : 0x3f);
    for (int drops = 0; drops < (same ? 4 : 1); ++drops) {
      const int dropped[] = {0, COLL, GROUP | COLL_API, KERNEL_CH | PROXY_OP};
      recorder.recording->drop = dropped[drops];
      char what[96];
      snprintf(what, sizeof(what), "second v%d, library v%d, mask 0x%x without 0x%x", scene->second,
               scene->library, recorder.recording->mask, recorder.recording->drop);
      const struct kept alone = play_alone(&recorder, scene->second, same);
      if (i < 3 && drops == 0) CHECK(alone.count > 300, "%s: %d records", what, alone.count);
      check_same(what, alone, play_beside(&recorder, scene->library, same));
    }
  }
  CHECK(log_count(NCCL_LOG_WARN, "") == 0, "%d warnings", log_count(NCCL_LOG_WARN, ""));
  if (scene->library >= 4) {
    CHECK(log_count(NCCL_LOG_INFO, "chained profiler recording") == 1, "%d lines name it",
          log_count(NCCL_LOG_INFO, "chained profiler recording"));
    CHECK(log_count(NCCL_LOG_INFO, "KernelCh all the time") == (scene->second >= 3),
          "the cost is not said");
  }
}

/* It changes its mask while the job runs. */
static void change_mask(void* data) {
  const struct scene* scene = data;
  const struct recorder recorder = load_recorder(scene->second);
  env_set("DIAPASON_PROFILER_CHAIN", recorder_path(scene->second));
  struct kept kept[2][3];
  for (int beside = 0; beside < 2; ++beside) {
    static int words[2];
    struct player player = {.api = scene->library, .word = &words[beside]};
    player.profiler = beside ? load_plugin(scene->library) : recorder.profiler;
    recorder.recording->mask = COLL;
    player_open(&player, 1, 0, host.logger);
    const int masks[] = {COLL | P2P | KERNEL_CH, 0, COLL | PROXY_OP};
    for (int i = 0; i < 3; ++i) {
      __atomic_store_n(recorder.recording->word, masks[i], __ATOMIC_RELAXED);
      play_calls(&player, 2); /* it is noticed with the next event: one call later */
      recorder.reset();
      play_calls(&player, 5);
      kept[beside][i] = keep(&recorder);
    }
    player_close(&player);
    recorder.reset();
  }
  for (int i = 0; i < 3; ++i) check_same("a mask that changes", kept[0][i], kept[1][i]);
}

struct crowd {
  struct player player;
  int number;
};

static void* play_in_a_crowd(void* data) {
  struct crowd* one = data;
  for (int round = 0; round < 3; ++round) {
    player_open(&one->player, 100 + (uint64_t)one->number, one->number, host.logger);
    for (int i = 0; i < MANY_CALLS; ++i) {
      struct played_call call = play_call(&one->player);
      play_rest(&call);
    }
    player_close(&one->player);
  }
  return NULL;
}

/* Which numbers events get depends on the order of threads: those are left out. */
static struct kept keep_unordered(const struct recorder* recorder) {
  struct kept kept = keep(recorder);
  for (int i = 0; i < kept.count; ++i) {
    struct record* record = &kept.records[i];
    record->event = record->event > 0;
    record->parent = record->parent > 0;
    record->group = record->group > 0;
    record->context = record->context > 0;
  }
  qsort(kept.records, (size_t)kept.count, sizeof(struct record), compare_records);
  return kept;
}

static void crowd(void* data) {
  const struct scene* scene = data;
  const struct recorder recorder = load_recorder(scene->second);
  env_set("DIAPASON_PROFILER_CHAIN", recorder_path(scene->second));
  env_set("DIAPASON_JOURNAL", temp_path("crowd.jsonl"));
  recorder.recording->mask = 0xfff;
  struct kept kept[2];
  for (int beside = 0; beside < 2; ++beside) {
    static int words[2];
    struct crowd members[THREADS];
    pthread_t threads[THREADS];
    memset(members, 0, sizeof(members));
    for (int i = 0; i < THREADS; ++i) {
      members[i].number = i;
      members[i].player.api = scene->library;
      members[i].player.word = &words[beside];
      members[i].player.profiler = beside ? load_plugin(scene->library) : recorder.profiler;
    }
    /* The first is there all the time, so that the mask is: all of them share it. */
    struct player holder = members[0].player;
    player_open(&holder, 99, 0, host.logger);
    for (int i = 0; i < THREADS; ++i) {
      if (pthread_create(&threads[i], NULL, play_in_a_crowd, &members[i]) != 0) {
        give_up("cannot start a thread");
      }
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    player_close(&holder);
    kept[beside] = keep_unordered(&recorder);
  }
  check_same("many threads", kept[0], kept[1]);
}

struct failure {
  const char* name;    /* DIAPASON_PROFILER_CHAIN */
  const char* warning; /* part of the one warning; NULL: none */
  int fail_init;
  bool mode_off;
};

/* The plugin goes on alone, with one warning, however many communicators come. */
static void fails(void* data) {
  const struct failure* failure = data;
  if (failure->name != NULL) env_set("DIAPASON_PROFILER_CHAIN", failure->name);
  if (failure->mode_off) env_set("DIAPASON_MODE", "off");
  if (failure->fail_init != 0) load_recorder(5).recording->fail_init = failure->fail_init;
  static int word;
  struct player player = {.api = 6, .profiler = load_plugin(6), .word = &word};
  for (int i = 0; i < 3; ++i) {
    player_open(&player, 5, 0, host.logger);
    CHECK(player.context == NULL && word == 0, "context %p, mask 0x%x", player.context, word);
    struct played_call call = play_call(&player);
    play_rest(&call);
    player_close(&player);
  }
  const int warnings = log_count(NCCL_LOG_WARN, "");
  CHECK(warnings == (failure->warning != NULL), "%d warnings", warnings);
  if (failure->warning != NULL) {
    CHECK(log_count(NCCL_LOG_WARN, failure->warning) == 1, "no '%s'", failure->warning);
  }
}

/* Named by NCCL_PROFILER_PLUGIN, where the env plugin has put this plugin in its place. */
static void named_by_library_variable(void* data) {
  (void)data;
  const struct recorder recorder = load_recorder(5);
  recorder.recording->mask = COLL;
  env_set("NCCL_PROFILER_PLUGIN", recorder_path(5));
  check_same("NCCL_PROFILER_PLUGIN", play_alone(&recorder, 5, false),
             play_beside(&recorder, 6, false));
}

/* No variable names it, and the env plugin has put this plugin where the library would have found
 * it. */
struct unnamed {
  int second;        /* v5 has the library's default name, v6 that of the network plugin */
  bool asked;        /* whether the library has asked the env plugin */
  const char* named; /* NCCL_PROFILER_PLUGIN */
  const char* chain; /* DIAPASON_PROFILER_CHAIN */
  const char* place; /* in the log; NULL: it is not chained */
};

static void found_by_library_rules(void* data) {
  const struct unnamed* unnamed = data;
  const struct recorder recorder = load_recorder(unnamed->second);
  recorder.recording->mask = COLL;
  if (unnamed->named != NULL) env_set("NCCL_PROFILER_PLUGIN", unnamed->named);
  if (unnamed->chain != NULL) env_set("DIAPASON_PROFILER_CHAIN", unnamed->chain);
  if (unnamed->asked) {
    const env_v1* env = dlsym(dlopen(g_plugin, RTLD_NOW | RTLD_LOCAL), "ncclEnvPlugin_v1");
    if (env == NULL) give_up("no env plugin");
    env->get_env("NCCL_PROFILER_PLUGIN");
  }
  struct kept alone = play_alone(&recorder, unnamed->second, true);
  struct kept beside = play_beside(&recorder, 6, true);
  if (unnamed->place == NULL) {
    CHECK(beside.count == 0, "%d records of a profiler that is not chained", beside.count);
    return;
  }
  if (unnamed->second == 6) {
    check_same("without a name", alone, beside);
  } else {
    CHECK(beside.count > 100, "%d records", beside.count);
  }
  CHECK(log_count(NCCL_LOG_INFO, unnamed->place) == 1, "no '%s'", unnamed->place);
}

/* Events after the end of their communicator reach nobody. */
static void after_the_end(void* data) {
  (void)data;
  const struct recorder recorder = load_recorder(7);
  recorder.recording->mask = 0xffff;
  env_set("DIAPASON_PROFILER_CHAIN", recorder_path(7));
  static int word;
  struct player player = {.api = 7, .profiler = load_plugin(7), .word = &word};
  player_open(&player, 1, 0, host.logger);
  struct played_call call = play_call(&player);
  player_close(&player);
  CHECK(recorder.recording->records[recorder.recording->count - 1].what == R_END, "no end");
  const int before = recorder.recording->count;
  play_rest(&call);
  profiler_state state = {.stamp = 5};
  player.profiler->record_state(call.coll, KERNEL_CH_STOP, &state);
  player.profiler->stop_event(call.coll);
  player_close(&player);
  CHECK(recorder.recording->count == before, "%d records came late",
        recorder.recording->count - before);
}

/* Far more events than there is memory for: every one that began is stopped. */
static void more_than_fits(void* data) {
  (void)data;
  const struct recorder recorder = load_recorder(7);
  recorder.recording->mask = COLL_API;
  env_set("DIAPASON_PROFILER_CHAIN", recorder_path(7));
  static int word;
  struct player player = {.api = 7, .profiler = load_plugin(7), .word = &word};
  player_open(&player, 1, 0, host.logger);
  for (int i = 0; i < 80000; ++i) play_call(&player);
  void* held[100];
  for (int i = 0; i < 100; ++i) held[i] = play_capture(&player);
  for (int i = 0; i < 20000; ++i) play_call(&player);
  int started = 0, stopped = 0;
  for (int i = 0; i < recorder.recording->count; ++i) {
    started += recorder.recording->records[i].what == R_START;
    stopped += recorder.recording->records[i].what == R_STOP;
  }
  CHECK(started == stopped && started == 2 * 100100, "%d began, %d stopped", started, stopped);
  recorder.recording->mask = 0;
  recorder.reset();
  player_close(&player);
  CHECK(held[99] != NULL, "no handle");
}

int main(int count, char** arguments) {
  if (count != 3) give_up("usage: profiler_second PLUGIN FOLDER");
  g_plugin = arguments[1];
  recorder_folder = arguments[2];
  host.logger = captured_log;
  for (int second = 1; second <= PROFILER_NEWEST_API; ++second) {
    for (int library = second; library <= PROFILER_NEWEST_API; ++library) {
      for (int journal = 0; journal < 2; ++journal) {
        case_begin("second profiler v%d, library v%d%s", second, library,
                   journal ? ", with a journal" : "");
        struct scene scene = {second, library, journal != 0};
        child_succeeds("masks", 20, compare_masks, &scene);
      }
    }
    case_begin("second profiler v%d", second);
    struct scene scene = {second, second, false};
    child_succeeds("a mask that changes", 20, change_mask, &scene);
    child_succeeds("a crowd", 60, crowd, &scene);
  }
  const struct failure failures[] = {
      {"/nonexistent/profiler.so", "cannot be opened", 0, false},
      {"nonexistent", "cannot be opened", 0, false},
      {"libc.so.6", "has no profiler interface", 0, false},
      {g_plugin, "is this plugin itself", 0, false},
      {recorder_path(7), "speaks only newer versions", 0, false},
      {"none", NULL, 0, false},
      {NULL, NULL, 0, false},
  };
  for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); ++i) {
    case_begin("no second profiler: %s", failures[i].name != NULL ? failures[i].name : "unset");
    child_succeeds("failure", 20, fails, (void*)&failures[i]);
  }
  case_begin("a second profiler that fails");
  struct failure failing = {recorder_path(5), "failed to start", 3, false};
  child_succeeds("failure", 20, fails, &failing);
  case_begin("a second profiler, off");
  failing = (struct failure){recorder_path(5), NULL, 0, true};
  child_succeeds("off", 20, fails, &failing);
  case_begin("a second profiler by the library's own variable");
  child_succeeds("variable", 20, named_by_library_variable, NULL);
  const struct unnamed unnamed[] = {
      {5, true, NULL, NULL, "by the library's default name"},
      {6, true, NULL, NULL, "inside the network plugin"},
      {6, true, "/nonexistent/profiler.so", NULL, "inside the network plugin"},
      {5, true, "/nonexistent/profiler.so", NULL, NULL},
      {5, true, "none", NULL, NULL},
      {5, true, "", NULL, NULL},
      {5, true, NULL, "none", NULL},
      {5, false, NULL, NULL, NULL},
      {6, false, NULL, NULL, NULL},
  };
  for (size_t i = 0; i < sizeof(unnamed) / sizeof(*unnamed); ++i) {
    case_begin("a second profiler by the library's rules, %d", (int)i);
    child_succeeds("rules", 20, found_by_library_rules, (void*)&unnamed[i]);
  }
  case_begin("late events");
  child_succeeds("late events", 20, after_the_end, NULL);
  case_begin("many events");
  child_succeeds("many events", 60, more_than_fits, NULL);
  return checks_report("profiler_second");
}
