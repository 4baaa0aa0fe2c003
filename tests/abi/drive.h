/* drive.h: the parts of drive_all_versions, and the runner of their tables. */
#ifndef TESTS_ABI_DRIVE_H_
#define TESTS_ABI_DRIVE_H_

#include "host.h"

/* One question under one policy, in every API version from `first` to `last`. */
struct scenario {
  const char* what;
  int first;
  int last;
  const char* rows;
  const char* settings[3]; /* "NAME=value" */
  int version;             /* what the library claims; 0: it does not say */
  size_t nodes;            /* 0: one node of eight ranks */
  size_t ranks;
  struct question question; /* pipe_ops 0 stands for 1 */
  struct choice expected;
};
void run_scenarios(const struct scenario* scenarios, size_t count);
#define RUN(scenarios) run_scenarios(scenarios, sizeof(scenarios) / sizeof((scenarios)[0]))

/* For scenarios' `last`. */
#define NEWEST TUNER_NEWEST_API
/* For scenarios' `expected`: the outputs come back as they went in. */
#define UNTOUCHED \
  { UNDEF, UNDEF, CHANNELS_BEFORE }
/* A row's last four columns: any nodes, ranks, numPipeOps, regBuff. */
#define ANY ",-1,-1,-1,-1\n"

void set_all(const char* const* settings, size_t count);

void drive_rows(void);     /* which row answers */
void drive_sources(void);  /* where the policy comes from */
void drive_tables(void);   /* how an answer is written into the cost table */
void drive_channels(void); /* when a channel count is passed on */
void drive_pairs(void);    /* v1 and v2, which have no table */
void drive_edges(void);    /* NULL, numbers out of range, which library asks */
void drive_pins(void);     /* diapason.h */
void drive_2_31(void);     /* what 2.31 and later do otherwise */

/* The command-line tool, for the inline policy. */
extern const char* cli_path;
/* Small libraries that look like librccl and like a framework with RCCL linked in. */
extern const char* fake_libraries;

#endif /* TESTS_ABI_DRIVE_H_ */
