/* recorder.h: the recording profilers (recording_profiler.c) as a test uses them. */
#ifndef TESTS_ABI_RECORDER_H_
#define TESTS_ABI_RECORDER_H_

#include "profiler_abi.h"
#include "recording_profiler.h"

extern const char* recorder_folder;

struct recorder {
  const profiler_any* profiler;
  struct recording* recording;
  void (*reset)(void);
};
/* All of these give up when something is missing. The path is overwritten by the next call. */
const char* recorder_path(int api);
struct recorder load_recorder(int api);
const profiler_any* symbol_of(void* file, int api);

/* What is kept of a run, to be compared. */
struct kept {
  int count;
  struct record* records;
};
/* Takes the records away from the profiler. */
struct kept keep(const struct recorder* recorder);
int compare_records(const void* one, const void* other);
/* Frees both. */
void check_same(const char* what, struct kept alone, struct kept beside);

#endif /* TESTS_ABI_RECORDER_H_ */
