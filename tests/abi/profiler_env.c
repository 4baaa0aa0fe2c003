/* The env plugin: with NCCL_ENV_PLUGIN alone, the library finds the tuner and the profiler too.
 *
 *   profiler_env PLUGIN (a path, which may be relative) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "host.h"
#include "profiler_abi.h"

typedef const char* (*get_env)(const char*);

static bool same(const char* one, const char* other) {
  return (one == NULL) == (other == NULL) && (one == NULL || strcmp(one, other) == 0);
}

static void check_answer(get_env ask, const char* name, const char* wanted) {
  const char* answer = ask(name);
  CHECK(same(answer, wanted), "%s is %s, not %s", name, answer ? answer : "(nothing)",
        wanted ? wanted : "(nothing)");
}

static void check_answers(int api, get_env ask, const char* plugin) {
  case_begin("env v%d", api);
  check_answer(ask, "NCCL_TUNER_PLUGIN", plugin);
  check_answer(ask, "NCCL_PROFILER_PLUGIN", plugin);
  check_answer(ask, "NCCL_NET_PLUGIN", NULL);
  check_answer(ask, "NCCL_ALGO", NULL);
  CHECK(ask("NCCL_TUNER_PLUGIN") == ask("NCCL_TUNER_PLUGIN"), "the answer moves");
  env_set("NCCL_ALGO", "ring");
  check_answer(ask, "NCCL_ALGO", "ring");
  env_set("NCCL_PROFILER_PLUGIN", "none");
  check_answer(ask, "NCCL_PROFILER_PLUGIN", "none");
  check_answer(ask, "NCCL_TUNER_PLUGIN", plugin);
  env_set("NCCL_TUNER_PLUGIN", "libnccl-net.so"); /* as aws-ofi-nccl sets it in the process */
  check_answer(ask, "NCCL_TUNER_PLUGIN", plugin);
  env_set("NCCL_TUNER_PLUGIN", "None");
  check_answer(ask, "NCCL_TUNER_PLUGIN", "None");
  env_set("NCCL_PROFILER_PLUGIN", "/opt/inspector.so");
  check_answer(ask, "NCCL_PROFILER_PLUGIN", plugin);
  case_begin("env v%d, off", api);
  env_set("DIAPASON_MODE", "off");
  check_answer(ask, "NCCL_TUNER_PLUGIN", NULL);
  check_answer(ask, "NCCL_PROFILER_PLUGIN", NULL);
  env_set("NCCL_TUNER_PLUGIN", "libnccl-net.so");
  check_answer(ask, "NCCL_TUNER_PLUGIN", "libnccl-net.so");
}

int main(int count, char** arguments) {
  if (count != 2) give_up("usage: profiler_env PLUGIN");
  char plugin[PATH_MAX];
  if (realpath(arguments[1], plugin) == NULL) give_up("no %s", arguments[1]);
  if (strlen(plugin) > 254) {
    say("SKIP: the library would cut this path: %s", plugin);
    return EXIT_SKIPPED;
  }
  case_begin("env plugins");
  void* handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) give_up("cannot load %s: %s", arguments[1], dlerror());
  const env_v1* v1 = dlsym(handle, "ncclEnvPlugin_v1");
  const env_v2* v2 = dlsym(handle, "ncclEnvPlugin_v2");
  if (v1 == NULL || v2 == NULL) give_up("the plugin has no env plugin");
  CHECK(strcmp(v1->name, "diapason") == 0 && strcmp(v2->name, "diapason") == 0, "%s, %s", v1->name,
        v2->name);
  output_hold();
  CHECK(v1->init(2, 28, 7, "") == 0, "v1 init");
  CHECK(v2->init(2, 30, 7, NULL, captured_log) == 0, "v2 init");
  CHECK(log_count(NCCL_LOG_INFO, plugin) == 1, "%d lines name the file",
        log_count(NCCL_LOG_INFO, plugin));
  CHECK(v2->init(2, 30, 7, "+cuda13", NULL) == 0, "v2 init without a logger");
  CHECK(output_release() == 0, "something was printed");
  /* A relative path was resolved before the program went elsewhere. */
  if (chdir("/") != 0) give_up("cannot go to /");
  check_answers(1, v1->get_env, plugin);
  check_answers(2, v2->get_env, plugin);
  case_begin("env plugins end");
  const char* answer = v2->get_env("NCCL_TUNER_PLUGIN");
  CHECK(v1->finalize() == 0 && v2->finalize() == 0, "finalize");
  CHECK(same(answer, plugin), "answers live on");
  return checks_report("profiler_env");
}
