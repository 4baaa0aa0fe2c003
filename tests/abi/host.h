/* host.h: plays NCCL or RCCL towards the plugin: loads it as they do, and speaks to every version
 * of its interface through one pair of calls. */
#ifndef TESTS_ABI_HOST_H_
#define TESTS_ABI_HOST_H_

#include <stdbool.h>

#include "tuner_abi.h"

/* The loaded plugin. The pin functions are found the way diapason.h tells programs to. */
struct host {
  void* handle;
  const tuner_v1* v1;
  const tuner_v2* v2;
  const tuner_v3* v3;
  const tuner_v4* v4;
  const tuner_v5* v5;
  const tuner_v6* v6;
  const tuner_v7* v7;
  tuner_logger logger; /* for communicators created from now on; NULL is allowed */
  const char* (*version)(void);
  int (*pin)(int algorithm, int protocol, int channels);
  void (*unpin)(void);
  void (*pin_counts)(unsigned long long* asked, unsigned long long* applied);
};
extern struct host host;

/* Gives up when a symbol is missing. */
void host_load(const char* plugin);
/* What the library does with the last communicator; host_load may follow. */
void host_close(void);

struct comm {
  int api;
  void* context; /* NULL: the plugin stepped aside; always NULL for v1 */
};
/* Both check that the plugin reports success, and that it leaves what it is handed alone. */
struct comm comm_open(int api, size_t nodes, size_t ranks);
void comm_close(struct comm* comm);

struct question {
  int collective;
  size_t bytes;
  int pipe_ops;
  int reg_buff;
  int collnet; /* v1 and v2 */
  int nvls;
};
/* An ordinary question: one operation, unregistered buffers. */
struct question ordinary(int collective, size_t bytes);

/* The library's cost table, with room around it that nobody may write to. */
enum { MOST_CELLS = 96, MARGIN = 8 };
struct table {
  float margin_before[MARGIN];
  float cells[MOST_CELLS]; /* row-major; those beyond algorithms * protocols are margin too */
  float margin_after[MARGIN];
  int algorithms;
  int protocols;
};
void table_fill(struct table* table, int algorithms, int protocols, float value);
float* table_at(struct table* table, int algorithm, int protocol);
/* Microseconds for what the library runs for this collective, -1 elsewhere. All available costs
 * differ, and the cheapest pair is the one with the lowest numbers. */
void table_typical(struct table* table, int collective);
bool table_same(const struct table* one, const struct table* other);
/* The pair the library takes from the table that it had handed over as `offered`. Up to 2.30: the
 * smallest entry that is not negative, the first of equals. From 2.31 on (claimed_version): the
 * smallest of those that were on offer, whatever its sign, the last of equals. False when there is
 * none. */
bool table_winner(const struct table* offered, const struct table* table, int* algorithm,
                  int* protocol);

/* The question itself, in the communicator's own version. The plugin's result is returned. */
int ask_table(const struct comm* comm, const struct question* question, struct table* table,
              int* channels);
int ask_pair(const struct comm* comm, const struct question* question, int* algorithm,
             int* protocol, int* channels);

/* What became of a question, whichever version it was asked in. UNDEF, UNDEF: nothing was chosen;
 * with a table that means that not a byte of it has changed. */
struct choice {
  int algorithm;
  int protocol;
  int channels;
};
enum { CHANNELS_BEFORE = 0 }; /* what the library hands over */
struct choice decide(const struct comm* comm, const struct question* question);

#endif /* TESTS_ABI_HOST_H_ */
