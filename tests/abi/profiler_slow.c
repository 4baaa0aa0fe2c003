/* Slow calls and the summary of a communicator, as DIAPASON_SLOW_CALL and DIAPASON_SLOW_FACTOR ask
 * for them: on standard error, in every version of the profiler interface that has times.
 *
 *   profiler_slow PLUGIN */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "profiler_host.h"

enum { RANKS = 4, CALLS = 40, US = 1000 };

struct scene {
  int api;
  const char* limit;
  const char* factor;
  bool slow; /* one line is expected */
};

static int count_text(const char* text, const char* wanted) {
  int count = 0;
  for (; (text = strstr(text, wanted)) != NULL; ++text) ++count;
  return count;
}

static void one_call(struct watched* watched, uint64_t start, uint64_t length) {
  void* group_api = start_group_api(watched, false);
  void* parent = start_coll_api(watched, "AllReduce", kRun.count, "ncclFloat32", false);
  stop(watched->api, parent);
  start_launch(watched);
  void* group = start_group(watched);
  void* run = start_coll(watched, has_calls(watched->api) ? parent : group, &kRun);
  stop(watched->api, run);
  stop(watched->api, group);
  stop(watched->api, group_api);
  for (int channel = 0; channel < 2; ++channel) {
    void* kernel = start_kernel(watched->api, watched->context, run, channel, start);
    stop_kernel(watched->api, kernel, start + length);
  }
}

static void play(void* data) {
  const struct scene* scene = data;
  const int kept[2] = {dup(1), dup(2)};
  const char* paths[2] = {temp_path("out"), temp_path("err")};
  for (int i = 0; i < 2; ++i) {
    const int file = open(paths[i], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (file < 0 || dup2(file, i + 1) < 0) give_up("cannot redirect output");
    close(file);
  }
  env_set("DIAPASON_SLOW_CALL", scene->limit);
  env_set("DIAPASON_SLOW_FACTOR", scene->factor);
  struct watched watched = watched_open(scene->api, RANKS, 0);
  const int mask = event_mask();
  const bool timed = (mask & KERNEL_CH) != 0;
  uint64_t start = 1000 * US;
  for (int i = 0; i < CALLS; ++i) one_call(&watched, start += 10000 * US, 100 * US);
  one_call(&watched, start += 10000 * US, 5000 * US);
  watched_close(&watched);
  for (int i = 0; i < 2; ++i) dup2(kept[i], i + 1);

  const bool on = scene->limit != NULL || scene->factor != NULL;
  char* out = read_file(paths[0]);
  char* err = read_file(paths[1]);
  if (!CHECK(out != NULL && err != NULL, "no output")) return;
  CHECK((mask & COLL) != 0 || !on, "mask 0x%x", mask);
  CHECK(mask == 0 || on, "mask 0x%x at rest", mask);
  CHECK(out[0] == '\0', "standard output: %s", out);
  CHECK(count_text(err, "slow call: allreduce number") == (scene->slow && timed ? 1 : 0), "%s",
        err);
  CHECK(count_text(err, "calls of communicator") == (on ? 1 : 0), "%s", err);
  if (on && timed) {
    CHECK(count_text(err, ": 41 timed, ") == 1, "%s", err);
    CHECK(count_text(err, "\ndiapason: rank 0: allreduce ") == 1, "%s", err);
  } else if (on) {
    CHECK(count_text(err, "41 without a GPU time") == 1, "%s", err);
  }
  if (scene->slow && timed) {
    CHECK(count_text(err, "diapason: rank 0: slow call: ") == 1, "%s", err);
    CHECK(count_text(err, "4KiB took 5 ms (") == 1, "%s", err);
    CHECK(count_text(err, "usually 0.1") == 1, "%s", err);
    CHECK(count_text(err, "ring/simple") == 2, "%s", err);
  }
  CHECK(event_mask() == 0, "a mask of 0x%x is left", event_mask());
  free(out);
  free(err);
}

int main(int count, char** arguments) {
  if (count != 2) give_up("usage: profiler_slow PLUGIN");
  host_load(arguments[1]);
  profiler_load();
  for (int api = PROFILER_OLDEST_API; api <= PROFILER_NEWEST_API; ++api) {
    const struct scene scenes[] = {{api, NULL, NULL, false},
                                   {api, "1", NULL, true},
                                   {api, "1000", NULL, false},
                                   {api, NULL, "10", true},
                                   {api, NULL, "100", false}};
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); ++i) {
      case_begin("profiler v%d, limit %s, factor %s", api, scenes[i].limit ? scenes[i].limit : "-",
                 scenes[i].factor ? scenes[i].factor : "-");
      struct scene scene = scenes[i];
      child_succeeds("slow calls", 10, play, &scene);
    }
  }
  return checks_report("profiler_slow");
}
