/* The tuner that the library would have loaded without us is found by the library's rules, and
 * nothing that is wrong with it, or with its name, matters.
 *
 *   find_tuner PLUGIN FOLDER
 *
 * FOLDER holds the chain_*.c libraries. The loader reads LD_LIBRARY_PATH when a program starts:
 * each scene has a folder of links and copies, and runs in this program, started again with it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "host.h"

#define ROW "allreduce,0,999,tree,simple,5,-1,-1,-1,-1\n"
enum { NEWEST = 23007 };

static const char* g_plugin;
static const struct choice kNothing = {UNDEF, UNDEF, CHANNELS_BEFORE};
static const struct choice kGood = {RING, LL, 3}; /* chain_good.c */

static void begin(const char* what, const char* tuner, const char* network) {
  case_begin("%s", what);
  claimed_version = NEWEST;
  env_set("NCCL_TUNER_PLUGIN", tuner);
  env_set("NCCL_NET_PLUGIN", network);
}

static void expect_api(int api, struct choice want) {
  struct comm comm = comm_open(api, 1, 8);
  const struct question question = ordinary(ALLREDUCE, 500);
  const struct choice got = decide(&comm, &question);
  CHECK(got.algorithm == want.algorithm && got.protocol == want.protocol &&
            got.channels == want.channels,
        "v%d: %d/%d on %d, not %d/%d on %d", api, got.algorithm, got.protocol, got.channels,
        want.algorithm, want.protocol, want.channels);
  comm_close(&comm);
}

/* Chained, and said to have been found this way; NULL: nothing is chained. Never a warning. */
static void expect(const char* found) {
  expect_api(6, found != NULL ? kGood : kNothing);
  CHECK(log_count(NCCL_LOG_INFO, "chained tuner good (v6)") == (found != NULL ? 1 : 0), "the log");
  if (found != NULL) CHECK(log_count(NCCL_LOG_INFO, found) >= 1, "the log does not say: %s", found);
  CHECK(log_count(NCCL_LOG_WARN, "") == 0, "a warning");
  if (checks_failed() > 0) log_print();
}

static const char kDefault[] = "the library's default name";
static const char kNetwork[] = "inside the network plugin";

/* libnccl-tuner.so is good, libnccl-net.so too. */
static void scene_both(void) {
  begin("NCCL_TUNER_PLUGIN is us", g_plugin, NULL);
  expect(kDefault);
  begin("us by the short name", "diapason", NULL);
  expect(kDefault);
  begin("not set", NULL, NULL);
  expect(kDefault);
  begin("empty", "", "");
  expect(kDefault);
  begin("no network plugins", g_plugin, "none");
  expect(kDefault);
  begin("switched off", g_plugin, NULL);
  env_set("DIAPASON_CHAIN", "None");
  expect(NULL);
  begin("the site wants none", "none", NULL);
  expect(NULL);
  begin("off", g_plugin, NULL);
  env_set("DIAPASON_MODE", "off");
  expect(NULL);
  /* As aws-ofi-nccl has set it: the library would have taken it before its default name. */
  begin("another one by now", "libnccl-net.so", NULL);
  expect("(NCCL_TUNER_PLUGIN, ");
  begin("another one, which is missing", "/nowhere/tuner.so", NULL);
  expect(kNetwork);
  CHECK(log_count(NCCL_LOG_INFO, "/nowhere/tuner.so") == 1, "it is not named");
  begin("a policy wins over it", g_plugin, NULL);
  use_policy(ROW);
  expect_api(6, (struct choice){TREE, SIMPLE, 5});
  for (int api = 2; api <= TUNER_NEWEST_API; ++api) {
    begin("every version", g_plugin, NULL);
    claimed_version = 0;
    expect_api(api, kGood);
  }
  begin("2.20 searches for nothing", g_plugin, NULL);
  claimed_version = 22005;
  expect_api(2, kNothing);
  begin("v1 searches for nothing", NULL, NULL);
  claimed_version = 0;
  expect_api(1, kNothing);
  CHECK(log_count(NCCL_LOG_WARN, "") == 0, "a warning");
  /* One that is named and missing: as with NCCL_TUNER_PLUGIN, the network plugin is next. */
  begin("named and missing", g_plugin, NULL);
  env_set("DIAPASON_CHAIN", "/nowhere/tuner.so");
  expect_api(6, kGood);
  CHECK(log_count(NCCL_LOG_WARN, "/nowhere/tuner.so") == 1, "no warning says so");
}

/* libnccl-tuner.so is this plugin: a link to it, or a copy. libnccl-net.so is good. */
static void scene_self(void) {
  begin("not set", NULL, NULL);
  expect(kNetwork);
  begin("by its name", "libnccl-tuner.so", NULL);
  expect(kNetwork);
  begin("named to be chained", g_plugin, NULL);
  env_set("DIAPASON_CHAIN", "libnccl-tuner.so");
  expect_api(6, kGood);
  CHECK(log_count(NCCL_LOG_WARN, "itself") == 1, "no warning says so");
  begin("no network plugins", NULL, "NONE");
  expect(NULL);
}

/* libnccl-net.so is a copy of this plugin. */
static void scene_self_as_network(void) {
  begin("not set", NULL, NULL);
  expect(NULL);
}

/* libnccl-net-good.so is good, libnccl-net-empty.so and librccl-net.so have no tuner. */
static void scene_network_names(void) {
  begin("no default one", g_plugin, NULL);
  expect(NULL);
  begin("a short name", g_plugin, "good");
  expect(kNetwork);
  begin("a list of which one exists", g_plugin, "absent,good,missing");
  expect(kNetwork);
  begin("2.26 knows no lists", g_plugin, "absent,good,missing");
  claimed_version = 22602;
  expect_api(4, kNothing);
  begin("RCCL has a name of its own", g_plugin, NULL);
  env_set("DIAPASON_LIBRARY", "rccl");
  claimed_version = 22803;
  expect_api(5, kNothing);
}

/* A tuner in the program itself, which the library is told of by a word. */
static int init(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
                tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)context, (void)comm_id, (void)ranks, (void)nodes, (void)logger, (void)domain;
  (void)constants;
  return TUNER_SUCCESS;
}
static int ask(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)table, (void)algorithms;
  (void)protocols, (void)reg_buff;
  *channels = 7;
  return TUNER_SUCCESS;
}
static int stop(void* context) {
  (void)context;
  return TUNER_SUCCESS;
}
const tuner_v6 ncclTunerPlugin_v6 = {"program", init, ask, stop, NULL};

static void scene_program(void) {
  const struct choice seven = {UNDEF, UNDEF, 7};
  begin("not told", g_plugin, NULL);
  expect(NULL);
  begin("as the network plugin", g_plugin, "STATIC_PLUGIN");
  expect_api(6, seven);
  begin("as the tuner", "static_plugin", "none");
  expect_api(6, seven);
  CHECK(log_count(NCCL_LOG_INFO, "chained tuner program (v6)") == 1, "the log");
}

/* The last of a list that is loaded is the one that the library uses. */
static void scene_network_list(void) {
  void* used = dlopen("libnccl-net-good.so", RTLD_NOW | RTLD_LOCAL);
  if (used == NULL) give_up("%s", dlerror());
  begin("one of a list is loaded", g_plugin, "good,empty");
  expect(kNetwork);
  void* last = dlopen("libnccl-net-empty.so", RTLD_NOW | RTLD_LOCAL);
  if (last == NULL) give_up("%s", dlerror());
  begin("the last one has no tuner", g_plugin, "good,empty");
  expect(NULL);
}

/* libodd.so and libodder.so are network plugins with a tuner, whose names no variable has. */
static void scene_loaded(void) {
  begin("not loaded", g_plugin, NULL);
  expect(NULL);
  void* odd = dlopen("libodd.so", RTLD_NOW | RTLD_LOCAL);
  if (odd == NULL) give_up("%s", dlerror());
  begin("loaded", g_plugin, NULL);
  expect_api(6, (struct choice){UNDEF, UNDEF, CHANNELS_BEFORE});
  CHECK(log_count(NCCL_LOG_INFO, "chained tuner network (v6)") == 1, "it is not found");
  CHECK(log_count(NCCL_LOG_INFO, kNetwork) == 1, "or not said to be one");
  begin("no network plugins", g_plugin, "none");
  expect(NULL);
  void* odder = dlopen("libodder.so", RTLD_NOW | RTLD_LOCAL);
  if (odder == NULL) give_up("%s", dlerror());
  begin("two of them", g_plugin, NULL);
  expect(NULL);
  CHECK(log_count(NCCL_LOG_INFO, "chained tuner") == 0, "one of the two is used");
}

/* What is wrong with libnccl-tuner.so. */
static void broken(const char* what, const char* line, int warnings) {
  begin(what, g_plugin, NULL);
  use_policy(ROW);
  expect_api(5, (struct choice){TREE, SIMPLE, 5});
  CHECK(log_count(warnings > 0 ? NCCL_LOG_WARN : NCCL_LOG_INFO, line) == 1, "not said: %s", line);
  CHECK(log_count(NCCL_LOG_WARN, "") == warnings, "%d warnings", log_count(NCCL_LOG_WARN, ""));
}
static void scene_refuses(void) { broken("init fails", "failed to start", 1); }
static void scene_empty(void) { broken("no tuner", "has no tuner API", 0); }
static void scene_newer(void) { broken("v6 alone", "v6, which does not fit", 0); }
static void scene_incomplete(void) { broken("a callback is missing", "callback", 1); }
static void scene_scribbler(void) {
  begin("it scribbles and fails", g_plugin, NULL);
  expect_api(6, kNothing);
}

/* RCCL's own tuner is not a library that could be chained. */
static void scene_rccl(void) {
  const char* kOff = "RCCL's built-in tuner";
  begin("its table is our policy", g_plugin, NULL);
  env_set("DIAPASON_LIBRARY", "rccl");
  env_set("NCCL_TUNER_CONFIG_FILE", write_text("table.conf", ROW));
  expect_api(5, (struct choice){TREE, SIMPLE, 5});
  CHECK(log_count(NEW_RCCL_LOG_INFO, kOff) == 1, "not said");
  CHECK(log_count(NEW_RCCL_LOG_INFO, "its table is used as the policy") == 1, "nor what it does");
  use_policy("allreduce,0,999,ring,simple,5,-1,-1,-1,-1\n");
  log_clear();
  expect_api(5, (struct choice){RING, SIMPLE, 5});
  CHECK(log_count(NEW_RCCL_LOG_INFO, kOff) == 1, "not said of another policy");
  CHECK(log_count(NEW_RCCL_LOG_INFO, "its table is used") == 0, "its table is not used");
  begin("embedded", g_plugin, NULL);
  env_set("DIAPASON_LIBRARY", "rccl");
  env_set("RCCL_TUNER_EMBEDDED_CONFIG", "1");
  expect_api(5, kNothing);
  CHECK(log_count(NEW_RCCL_LOG_INFO, kOff) == 1, "not said");
  env_set("RCCL_TUNER_EMBEDDED_CONFIG", NULL);
  begin("nothing is set", g_plugin, NULL);
  env_set("DIAPASON_LIBRARY", "rccl");
  expect_api(5, kNothing);
  CHECK(log_count(NEW_RCCL_LOG_INFO, kOff) == 0, "said for nothing");
}

/* A file of a scene: its name, and what it is: a library of FOLDER, or the plugin. */
struct file {
  const char* name;
  const char* of;
};
static const char kPluginLink[] = "a link to the plugin";
static const char kPluginCopy[] = "a copy of the plugin";
struct scene {
  const char* name;
  void (*run)(void);
  struct file files[4];
};
static const struct scene kScenes[] = {
    {"both", scene_both, {{"libnccl-tuner.so", "chain_good"}, {"libnccl-net.so", "chain_good"}}},
    {"link", scene_self, {{"libnccl-tuner.so", kPluginLink}, {"libnccl-net.so", "chain_good"}}},
    {"copy", scene_self, {{"libnccl-tuner.so", kPluginCopy}, {"libnccl-net.so", "chain_good"}}},
    {"network_is_us", scene_self_as_network, {{"libnccl-net.so", kPluginCopy}}},
    {"names",
     scene_network_names,
     {{"libnccl-net-good.so", "chain_good"},
      {"libnccl-net-empty.so", "chain_empty"},
      {"librccl-net.so", "chain_empty"}}},
    {"list",
     scene_network_list,
     {{"libnccl-net-good.so", "chain_good"}, {"libnccl-net-empty.so", "chain_empty"}}},
    {"loaded", scene_loaded, {{"libodd.so", "chain_network"}, {"libodder.so", "chain_network 2"}}},
    {"program", scene_program, {{"unused.so", "chain_empty"}}},
    {"refuses", scene_refuses, {{"libnccl-tuner.so", "chain_refuses"}}},
    {"empty", scene_empty, {{"libnccl-tuner.so", "chain_empty"}}},
    {"newer", scene_newer, {{"libnccl-tuner.so", "chain_v6_only"}}},
    {"incomplete", scene_incomplete, {{"libnccl-tuner.so", "chain_incomplete"}}},
    {"scribbler", scene_scribbler, {{"libnccl-tuner.so", "chain_scribbler"}}},
    {"rccl", scene_rccl, {{"unused.so", "chain_empty"}}},
};
enum { SCENES = sizeof(kScenes) / sizeof(kScenes[0]) };

static void copy_file(const char* from, const char* to) {
  FILE* in = fopen(from, "rb");
  FILE* out = fopen(to, "wb");
  if (in == NULL || out == NULL) give_up("cannot copy %s to %s", from, to);
  char buffer[65536];
  size_t size = 0;
  while ((size = fread(buffer, 1, sizeof(buffer), in)) > 0) fwrite(buffer, 1, size, out);
  fclose(in);
  if (fclose(out) != 0) give_up("cannot write %s", to);
}

static void make_file(const char* folder, const struct file* file, const char* chains) {
  char source[PATH_MAX];
  char target[PATH_MAX];
  snprintf(target, sizeof(target), "%s/%s", folder, file->name);
  if (file->of == kPluginLink) {
    if (symlink(g_plugin, target) != 0) give_up("cannot make %s", target);
    return;
  }
  if (file->of == kPluginCopy) {
    copy_file(g_plugin, target);
    return;
  }
  char library[64];
  snprintf(library, sizeof(library), "%s", file->of);
  library[strcspn(library, " ")] = '\0'; /* "x 2" is another copy of x */
  snprintf(source, sizeof(source), "%s/libnccl-tuner-%s.so", chains, library);
  copy_file(source, target);
}

static void play(const struct scene* scene, const char* program, const char* chains) {
  const char* folder = temp_path(scene->name);
  if (mkdir(folder, 0700) != 0) give_up("cannot make %s", folder);
  for (int i = 0; i < 4 && scene->files[i].name != NULL; ++i) {
    make_file(folder, &scene->files[i], chains);
  }
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_LIBRARY_PATH", folder, 1);
    execl(program, program, g_plugin, chains, scene->name, (char*)NULL);
    _exit(99);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "scene %s: status %d",
        scene->name, status);
  for (int i = 0; i < 4 && scene->files[i].name != NULL; ++i) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, scene->files[i].name);
    unlink(path);
  }
  rmdir(folder);
}

int main(int count, char** arguments) {
  if (count < 3) give_up("usage: find_tuner PLUGIN FOLDER [SCENE]");
  g_plugin = arguments[1];
  if (count == 3) {
    for (int i = 0; i < SCENES; ++i) play(&kScenes[i], "/proc/self/exe", arguments[2]);
    return checks_report("find_tuner");
  }
  host_load(g_plugin);
  for (int i = 0; i < SCENES; ++i) {
    if (strcmp(kScenes[i].name, arguments[3]) == 0) kScenes[i].run();
  }
  return checks_report(arguments[3]);
}
