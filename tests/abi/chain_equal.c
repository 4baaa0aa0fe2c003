/* A chained tuner answers through the plugin as it answers alone, call for call: bit for bit up to
 * v6; from v7 on, where the library reads back only what it offered, what the library then takes.
 *
 *   chain_equal PLUGIN FORM FILE
 *
 * FORM says how the plugin learns of the tuner: "path" (DIAPASON_CHAIN), "default" (found as
 * libnccl-tuner.so) or "network" (found inside libnccl-net.so); FILE is the tuner. For the last two
 * LD_LIBRARY_PATH holds its folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "host.h"

enum { QUESTIONS = 10000, RANKS = 16, NODES = 2 };

static const uint64_t kCommId = 0x1234567890abcdefull;

/* One library that is asked: the plugin, or the tuner alone. */
struct side {
  void* handle;
  int library; /* the newest version of the library that asks */
  int api;     /* that it is spoken to in */
  const void* tuner;
  void* context;
  /* The library's cost model; up to v6 its layout is that of tuner_constants. */
  union {
    tuner_constants older;
    tuner_constants_v7 newer;
    double all[sizeof(tuner_constants_v7) / sizeof(double)];
  } constants;
};

/* Every version that the library may speak; a new one is one more row here, and a case in the
 * functions below where its form is new. */
static const int kVersions[] = {2, 3, 4, 5, 6, 7};

static bool has_constants(int api) { return api >= 5; }
static bool has_chunk_size(int api) { return api >= 6; }

static const void* tuner_of(void* library, int api) {
  char name[32];
  snprintf(name, sizeof(name), TUNER_SYMBOL_FORMAT, api);
  return dlsym(library, name);
}

/* The newest version that the library on the other side can use, as it would choose. */
static struct side side_of(void* library, int api) {
  struct side side = {.handle = library, .library = api};
  for (side.api = api; side.api >= 2; --side.api) {
    side.tuner = tuner_of(library, side.api);
    if (side.tuner != NULL) return side;
  }
  give_up("no version up to v%d", api);
}

/* What a library that has the newer layout does for an older tuner: it copies there and back. */
static void copy_constants(tuner_constants* older, tuner_constants_v7* newer, bool back) {
  struct {
    void* older;
    void* newer;
    size_t size;
  } const parts[] = {
      {older->base_latencies, newer->base_latencies, sizeof(older->base_latencies)},
      {older->hardware_latencies, newer->hardware_latencies, sizeof(older->hardware_latencies)},
      {older->ll_most_bandwidth, newer->ll_most_bandwidth, sizeof(older->ll_most_bandwidth)},
      {older->ring_ll128_most_bandwidth, newer->ring_ll128_most_bandwidth,
       sizeof(older->ring_ll128_most_bandwidth)},
      {older->tree_ll128_most_bandwidth, newer->tree_ll128_most_bandwidth,
       sizeof(older->tree_ll128_most_bandwidth)},
      {older->tree_most_bandwidth, newer->tree_most_bandwidth, sizeof(older->tree_most_bandwidth)},
      {older->nvls_tree_most_bandwidth, newer->nvls_tree_most_bandwidth,
       sizeof(older->nvls_tree_most_bandwidth)},
  };
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    memcpy(back ? parts[i].newer : parts[i].older, back ? parts[i].older : parts[i].newer,
           parts[i].size);
  }
}

static int side_init(struct side* side, tuner_nvl_domain* domain) {
  if (side->api >= 7) {
    const tuner_v7* tuner = side->tuner;
    return tuner->init(&side->context, kCommId, RANKS, NODES, captured_log, domain,
                       &side->constants.newer);
  }
  if (!has_constants(side->api)) {
    const tuner_v4* tuner = side->tuner;
    return tuner->init(RANKS, NODES, captured_log, &side->context);
  }
  const tuner_v5* tuner = side->tuner;
  if (side->library < 7) {
    return tuner->init(&side->context, kCommId, RANKS, NODES, captured_log, domain,
                       &side->constants.older);
  }
  tuner_constants older;
  copy_constants(&older, &side->constants.newer, false);
  const int result =
      tuner->init(&side->context, kCommId, RANKS, NODES, captured_log, domain, &older);
  copy_constants(&older, &side->constants.newer, true);
  return result;
}

static void side_open(struct side* side) {
  tuner_nvl_domain domain = {NODES, 8, 8};
  const size_t count = sizeof(side->constants.all) / sizeof(double);
  for (size_t i = 0; i < count; ++i) side->constants.all[i] = (double)i / 7.0;
  const int result = side_init(side, &domain);
  CHECK(result == TUNER_SUCCESS, "v%d init returned %d", side->api, result);
}

static void side_close(struct side* side) {
  const tuner_v4* tuner = side->tuner; /* the last callback is alike in all of them */
  CHECK(tuner->destroy(side->context) == TUNER_SUCCESS, "v%d destroy", side->api);
}

/* What a library shows and takes back. */
struct answer {
  struct table table;
  int algorithm;
  int protocol;
  int channels;
};

static int side_ask(const struct side* side, const struct question* question,
                    struct answer* answer) {
  struct table* table = &answer->table;
  float** cells = (float**)(void*)table->cells;
  switch (side->api) {
    case 2: {
      const tuner_v2* tuner = side->tuner;
      return tuner->get_coll_info(side->context, question->collective, question->bytes,
                                  question->collnet, question->nvls, question->pipe_ops,
                                  &answer->algorithm, &answer->protocol, &answer->channels);
    }
    case 3: {
      const tuner_v3* tuner = side->tuner;
      return tuner->get_coll_info(side->context, question->collective, question->bytes,
                                  question->pipe_ops, cells, table->algorithms, table->protocols,
                                  &answer->channels);
    }
    default: {
      const tuner_v4* tuner = side->tuner; /* alike from v4 on */
      return tuner->get_coll_info(side->context, question->collective, question->bytes,
                                  question->pipe_ops, cells, table->algorithms, table->protocols,
                                  question->reg_buff, &answer->channels);
    }
  }
}

static uint64_t g_random = 88172645463325252ull;
static uint64_t draw(uint64_t below) {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return (g_random >> 11) % below;
}

/* A call: at least one entry of its table is on offer, and numPipeOps is not 0. */
static struct question draw_question(struct answer* answer) {
  memset(answer, 0, sizeof(*answer));
  struct table* table = &answer->table;
  table_fill(table, draw(4) == 0 ? ALGORITHMS_BEFORE_PAT : ALGORITHMS, PROTOCOLS, -1.0f);
  const int count = table->algorithms * table->protocols;
  for (int i = 0; i < count; ++i) {
    const uint64_t what = draw(8);
    if (what < 5) table->cells[i] = (float)draw(1000000) / 13.0f;
    if (what == 5) table->cells[i] = -1024.0f;
    if (what == 6) table->cells[i] = 3600000000.0f;
  }
  table->cells[draw((uint64_t)count)] = 12.5f;
  answer->algorithm = answer->protocol = UNDEF;
  answer->channels = draw(4) == 0 ? (int)draw(32) : 0;
  /* RCCL also asks about collectives that only it knows. */
  const int collective = draw(16) == 0 ? 5 + (int)draw(8) : (int)draw(COLLECTIVES);
  struct question question = {.collective = collective};
  question.bytes = (size_t)draw(1ull << (1 + draw(40)));
  question.pipe_ops = 1 + (int)draw(16);
  question.reg_buff = (int)draw(2);
  question.collnet = (int)draw(2);
  question.nvls = (int)draw(2);
  return question;
}

/* The entry that a library from 2.31 on takes: the last of the smallest of those it offered. */
static int taken(const struct table* offered, const struct table* answered) {
  int best = -1;
  for (int i = 0; i < offered->algorithms * offered->protocols; ++i) {
    if (offered->cells[i] < 0.0f) continue;
    if (best < 0 || answered->cells[i] <= answered->cells[best]) best = i;
  }
  return best;
}

static bool alike(int library, const struct answer* before, const struct answer* one,
                  const struct answer* other) {
  if (library < 7) return memcmp(one, other, sizeof(*one)) == 0;
  return one->channels == other->channels &&
         taken(&before->table, &one->table) == taken(&before->table, &other->table);
}

static void questions_are_alike(struct side* plugin, struct side* alone) {
  int different = 0;
  int changed = 0;
  for (int i = 0; i < QUESTIONS; ++i) {
    struct answer before;
    const struct question question = draw_question(&before);
    struct answer by_plugin = before;
    struct answer by_tuner = before;
    const int result = side_ask(plugin, &question, &by_plugin);
    const int wanted = side_ask(alone, &question, &by_tuner);
    changed += memcmp(&by_tuner, &before, sizeof(before)) != 0;
    if (result == wanted && alike(plugin->library, &before, &by_plugin, &by_tuner)) continue;
    if (++different == 1) {
      CHECK(false, "question %d: result %d and %d channels, not %d and %d", i, result,
            by_plugin.channels, wanted, by_tuner.channels);
    }
  }
  CHECK(different == 0, "%d of %d answers differ", different, QUESTIONS);
  CHECK(changed > QUESTIONS / 2, "the tuner has changed only %d answers", changed);
}

static void chunk_sizes_are_alike(const struct side* plugin, const struct side* alone) {
  const tuner_v6* by_plugin = plugin->tuner;
  const tuner_v6* by_tuner = alone->tuner;
  int different = 0;
  for (int i = 0; i < QUESTIONS; ++i) {
    size_t size = (1 + draw(2048)) * 512;
    size_t wanted = size;
    const int collective = (int)draw(COLLECTIVES);
    const size_t bytes = draw(1ull << 34);
    const int algorithm = (int)draw(ALGORITHMS);
    const int protocol = (int)draw(PROTOCOLS);
    const int channels = 1 + (int)draw(32);
    const int result = by_plugin->get_chunk_size(plugin->context, collective, bytes, algorithm,
                                                 protocol, channels, &size);
    const int wanted_result = by_tuner->get_chunk_size(alone->context, collective, bytes, algorithm,
                                                       protocol, channels, &wanted);
    different += result != wanted_result || size != wanted;
  }
  CHECK(different == 0, "%d of %d chunk sizes differ", different, QUESTIONS);
}

/* The settings under which the plugin changes nothing of its own. */
static void use_settings(int variant) {
  if (variant == 1) use_policy("allreduce,0,99999999999,tree,simple,5,77,-1,-1,-1\n");
  if (variant == 2) {
    use_policy("allreduce,0,99999999999,tree,simple,5,-1,-1,-1,-1\n");
    env_set("DIAPASON_MODE", "observe");
  }
  if (variant == 3) {
    env_set("DIAPASON_JOURNAL", temp_path("journal"));
    env_set("DIAPASON_JOURNAL_TABLES", "1");
  }
}

static void compare(int api, int variant, const char* plugin, const char* form, const char* file,
                    void* tuner) {
  static const char* const kVariants[] = {"no policy", "no row matches", "observing", "a journal"};
  case_begin("v%d, %s, %s", api, form, kVariants[variant]);
  claimed_version = api == 2 ? 22105 : 0;
  env_set("NCCL_TUNER_PLUGIN", plugin);
  if (strcmp(form, "path") == 0) env_set("DIAPASON_CHAIN", file);
  use_settings(variant);
  struct side by_plugin = side_of(host.handle, api);
  struct side alone = side_of(tuner, api);
  side_open(&by_plugin);
  CHECK(log_count(NCCL_LOG_INFO, "chained tuner random (v") == 1, "the log does not name it");
  CHECK(log_count(NCCL_LOG_INFO, file) == 1, "nor its file");
  CHECK(log_count(NCCL_LOG_WARN, "") == 0, "a warning");
  side_open(&alone);
  if (has_constants(alone.api)) {
    CHECK(memcmp(&by_plugin.constants, &alone.constants, sizeof(alone.constants)) == 0,
          "what it has changed in the cost model is lost");
  }
  questions_are_alike(&by_plugin, &alone);
  if (has_chunk_size(api) && has_chunk_size(alone.api)) chunk_sizes_are_alike(&by_plugin, &alone);
  side_close(&by_plugin);
  side_close(&alone);
}

int main(int count, char** arguments) {
  if (count != 4) give_up("usage: chain_equal PLUGIN FORM FILE");
  host_load(arguments[1]);
  void* tuner = dlopen(arguments[3], RTLD_NOW | RTLD_LOCAL);
  if (tuner == NULL) give_up("cannot load %s: %s", arguments[3], dlerror());
  for (size_t i = 0; i < sizeof(kVersions) / sizeof(kVersions[0]); ++i) {
    for (int variant = 0; variant < 4; ++variant) {
      compare(kVersions[i], variant, arguments[1], arguments[2], arguments[3], tuner);
    }
  }
  return checks_report("chain_equal");
}
