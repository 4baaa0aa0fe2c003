#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

struct host host;

static void* find(void* handle, const char* name) {
  void* symbol = dlsym(handle, name);
  if (symbol == NULL) give_up("the plugin has no %s", name);
  return symbol;
}

static const void* find_version(int api) {
  char name[32];
  snprintf(name, sizeof(name), TUNER_SYMBOL_FORMAT, api);
  return find(host.handle, name);
}

void host_load(const char* plugin) {
  host.handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (host.handle == NULL) give_up("cannot load %s: %s", plugin, dlerror());
  host.v1 = find_version(1);
  host.v2 = find_version(2);
  host.v3 = find_version(3);
  host.v4 = find_version(4);
  host.v5 = find_version(5);
  host.v6 = find_version(6);
  host.v7 = find_version(7);
  host.logger = captured_log;
  /* One process plays communicators of any size: there are no other ranks to verify a policy with.
   */
  void (*rehearse)(int) = NULL;
  *(void**)&rehearse = find(host.handle, "diapason_rehearse");
  rehearse(1);
  /* As diapason.h says: by its own name, although it was loaded by a path. */
  void* again = dlopen("libnccl-tuner-diapason.so", RTLD_NOW | RTLD_NOLOAD);
  if (again == NULL) give_up("the loaded plugin is not found by its name: %s", dlerror());
  if (again != host.handle) give_up("the plugin's name leads to another library");
  dlclose(again); /* the library's own handle keeps it */
  *(void**)&host.version = find(again, "diapason_version");
  *(void**)&host.pin = find(again, "diapason_pin");
  *(void**)&host.unpin = find(again, "diapason_unpin");
  *(void**)&host.pin_counts = find(again, "diapason_pin_counts");
}

void host_close(void) {
  if (dlclose(host.handle) != 0) give_up("cannot close the plugin: %s", dlerror());
  host.handle = NULL;
}

/* v5 and later hand over the library's cost model: it must come back as it was. */
static int init_with_constants(int api, struct comm* comm, size_t nodes, size_t ranks) {
  /* On the stack, as newer libraries have it: whoever keeps the pointer reads something else later.
   * What follows the version's own structure may not change either. */
  double numbers[256];
  double before[256];
  void* constants = numbers;
  memset(numbers, 0x5a, sizeof(numbers));
  memcpy(before, numbers, sizeof(numbers));
  tuner_nvl_domain domain = {(int)nodes, 1, 8};
  const uint64_t id = 0x1234567890abcdefull;
  int result = TUNER_INTERNAL_ERROR;
  switch (api) {
    case 5:
      result = host.v5->init(&comm->context, id, ranks, nodes, host.logger, &domain, constants);
      break;
    case 6:
      result = host.v6->init(&comm->context, id, ranks, nodes, host.logger, &domain, constants);
      break;
    default:
      result = host.v7->init(&comm->context, id, ranks, nodes, host.logger, &domain, constants);
  }
  CHECK(memcmp(numbers, before, sizeof(numbers)) == 0, "v%d init changed the constants", api);
  memset(numbers, 0xa5, sizeof(numbers));
  CHECK(domain.domains == (int)nodes && domain.most_ranks_per_domain == 8,
        "v%d init changed the domain", api);
  return result;
}

struct comm comm_open(int api, size_t nodes, size_t ranks) {
  struct comm comm = {api, NULL};
  int result = TUNER_INTERNAL_ERROR;
  switch (api) {
    case 1:
      result = host.v1->init(ranks, nodes, host.logger);
      break;
    case 2:
      result = host.v2->init(ranks, nodes, host.logger, &comm.context);
      break;
    case 3:
      result = host.v3->init(ranks, nodes, host.logger, &comm.context);
      break;
    case 4:
      result = host.v4->init(ranks, nodes, host.logger, &comm.context);
      break;
    default:
      result = init_with_constants(api, &comm, nodes, ranks);
  }
  CHECK(result == TUNER_SUCCESS, "v%d init returned %d", api, result);
  return comm;
}

void comm_close(struct comm* comm) {
  int result = TUNER_INTERNAL_ERROR;
  switch (comm->api) {
    case 1:
      result = host.v1->destroy();
      break;
    case 2:
      result = host.v2->destroy(comm->context);
      break;
    case 3:
      result = host.v3->destroy(comm->context);
      break;
    case 4:
      result = host.v4->destroy(comm->context);
      break;
    case 5:
      result = host.v5->finalize(comm->context);
      break;
    case 6:
      result = host.v6->finalize(comm->context);
      break;
    default:
      result = host.v7->finalize(comm->context);
  }
  CHECK(result == TUNER_SUCCESS, "v%d finalize returned %d", comm->api, result);
  comm->context = NULL;
}

struct question ordinary(int collective, size_t bytes) {
  return (struct question){.collective = collective, .bytes = bytes, .pipe_ops = 1};
}

static const float kMargin = 77.0f;

void table_fill(struct table* table, int algorithms, int protocols, float value) {
  for (int i = 0; i < MARGIN; ++i) table->margin_before[i] = table->margin_after[i] = kMargin;
  for (int i = 0; i < MOST_CELLS; ++i) {
    table->cells[i] = i < algorithms * protocols ? value : kMargin;
  }
  table->algorithms = algorithms;
  table->protocols = protocols;
}

float* table_at(struct table* table, int algorithm, int protocol) {
  return &table->cells[algorithm * table->protocols + protocol];
}

/* Whether any machine runs the pair: ring and tree have all protocols, the others simple alone. */
static bool pair_runs(int collective, int algorithm, int protocol) {
  if (algorithm != TREE && algorithm != RING && protocol != SIMPLE) return false;
  if (collective == BROADCAST || collective == REDUCE) return algorithm == RING;
  if (collective == ALLREDUCE) return algorithm != PAT;
  return algorithm == RING || algorithm == COLLNET_DIRECT || algorithm == NVLS || algorithm == PAT;
}

void table_typical(struct table* table, int collective) {
  table_fill(table, ALGORITHMS, PROTOCOLS, -1.0f);
  float cost = 10.0f;
  for (int algorithm = 0; algorithm < ALGORITHMS; ++algorithm) {
    for (int protocol = 0; protocol < PROTOCOLS; ++protocol) {
      if (!pair_runs(collective, algorithm, protocol)) continue;
      *table_at(table, algorithm, protocol) = cost;
      cost += 2.5f;
    }
  }
}

bool table_same(const struct table* one, const struct table* other) {
  return memcmp(one, other, sizeof(*one)) == 0;
}

static bool first_of_smallest(const struct table* table, int* winner) {
  float best = 3600000000.0f; /* where releases before 2.30, and RCCL, start their search */
  bool found = false;
  for (int i = 0; i < table->algorithms * table->protocols; ++i) {
    if (!(table->cells[i] >= 0.0f) || table->cells[i] >= best) continue;
    best = table->cells[i];
    *winner = i;
    found = true;
  }
  return found;
}

static bool last_of_smallest(const struct table* offered, const struct table* table, int* winner) {
  float best = FLT_MAX;
  bool found = false;
  for (int i = table->algorithms * table->protocols - 1; i >= 0; --i) {
    if (!(offered->cells[i] >= 0.0f) || !(table->cells[i] < best)) continue;
    best = table->cells[i];
    *winner = i;
    found = true;
  }
  return found;
}

bool table_winner(const struct table* offered, const struct table* table, int* algorithm,
                  int* protocol) {
  int winner = 0;
  const bool found = claimed_version >= 23100 ? last_of_smallest(offered, table, &winner)
                                              : first_of_smallest(table, &winner);
  if (!found) return false;
  *algorithm = winner / table->protocols;
  *protocol = winner % table->protocols;
  return true;
}

int ask_table(const struct comm* comm, const struct question* question, struct table* table,
              int* channels) {
  float** cells = (float**)(void*)table->cells;
  switch (comm->api) {
    case 3:
      return host.v3->get_coll_info(comm->context, question->collective, question->bytes,
                                    question->pipe_ops, cells, table->algorithms, table->protocols,
                                    channels);
    case 4:
      return host.v4->get_coll_info(comm->context, question->collective, question->bytes,
                                    question->pipe_ops, cells, table->algorithms, table->protocols,
                                    question->reg_buff, channels);
    case 5:
      return host.v5->get_coll_info(comm->context, question->collective, question->bytes,
                                    question->pipe_ops, cells, table->algorithms, table->protocols,
                                    question->reg_buff, channels);
    case 6:
      return host.v6->get_coll_info(comm->context, question->collective, question->bytes,
                                    question->pipe_ops, cells, table->algorithms, table->protocols,
                                    question->reg_buff, channels);
    case 7:
      return host.v7->get_coll_info(comm->context, question->collective, question->bytes,
                                    question->pipe_ops, cells, table->algorithms, table->protocols,
                                    question->reg_buff, channels);
    default:
      return TUNER_INTERNAL_ERROR;
  }
}

int ask_pair(const struct comm* comm, const struct question* question, int* algorithm,
             int* protocol, int* channels) {
  if (comm->api == 1) {
    return host.v1->get_coll_info(question->collective, question->bytes, question->collnet,
                                  question->nvls, question->pipe_ops, algorithm, protocol,
                                  channels);
  }
  return host.v2->get_coll_info(comm->context, question->collective, question->bytes,
                                question->collnet, question->nvls, question->pipe_ops, algorithm,
                                protocol, channels);
}

struct choice decide(const struct comm* comm, const struct question* question) {
  struct choice choice = {UNDEF, UNDEF, CHANNELS_BEFORE};
  int result = TUNER_SUCCESS;
  if (comm->api <= 2) {
    result = ask_pair(comm, question, &choice.algorithm, &choice.protocol, &choice.channels);
  } else {
    struct table table;
    table_typical(&table, question->collective);
    const struct table before = table;
    result = ask_table(comm, question, &table, &choice.channels);
    if (!table_same(&table, &before))
      table_winner(&before, &table, &choice.algorithm, &choice.protocol);
  }
  CHECK(result == TUNER_SUCCESS, "v%d getCollInfo returned %d", comm->api, result);
  return choice;
}
