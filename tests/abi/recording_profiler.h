/* recording_profiler.h: a profiler that writes down everything it is told. Built once for each
 * version of the interface; tests load it as the library does and as a second profiler. */
#ifndef TESTS_ABI_RECORDING_PROFILER_H_
#define TESTS_ABI_RECORDING_PROFILER_H_

#include <stdint.h>

enum recorded { R_INIT, R_START, R_STOP, R_STATE, R_END };

struct record {
  int what;
  int type;        /* the event's bit; of a state, its number */
  int event;       /* its number, from 1; 0: none */
  int parent;      /* the parent's number; -1: a pointer that this profiler has not made */
  int group;       /* the parent group's, v5 and later */
  int context;     /* the communicator's number; -1 as above */
  uint64_t digest; /* of every other field */
};

enum { RECORDS = 1 << 20 };
struct recording {
  int count;
  int mask;      /* what init asks for */
  int drop;      /* types that get no handle */
  int fail_init; /* what init returns */
  int* word;     /* the mask word that was handed to the last init */
  struct record records[RECORDS];
};

/* Exported by the profiler. */
struct recording* recording_of(void);
/* Forgets the records, keeps events and contexts. */
void recording_reset(void);

#endif /* TESTS_ABI_RECORDING_PROFILER_H_ */
