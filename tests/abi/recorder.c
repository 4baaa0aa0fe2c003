#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

const char* recorder_folder;

const char* recorder_path(int api) {
  static char path[4096];
  snprintf(path, sizeof(path), "%s/librecording-v%d.so", recorder_folder, api);
  return path;
}

const profiler_any* symbol_of(void* file, int api) {
  char name[32];
  snprintf(name, sizeof(name), PROFILER_SYMBOL_FORMAT, api);
  const profiler_any* profiler = dlsym(file, name);
  if (profiler == NULL) give_up("no %s", name);
  return profiler;
}

struct recorder load_recorder(int api) {
  void* file = dlopen(recorder_path(api), RTLD_NOW | RTLD_LOCAL);
  if (file == NULL) give_up("%s", dlerror());
  struct recorder recorder = {symbol_of(file, api), NULL, NULL};
  struct recording* (*of)(void) = (struct recording * (*)(void)) dlsym(file, "recording_of");
  recorder.reset = (void (*)(void))dlsym(file, "recording_reset");
  if (of == NULL || recorder.reset == NULL) give_up("not a recording profiler");
  recorder.recording = of();
  return recorder;
}

struct kept keep(const struct recorder* recorder) {
  struct kept kept = {recorder->recording->count, NULL};
  const size_t size = (size_t)(kept.count + 1) * sizeof(struct record);
  kept.records = malloc(size);
  memcpy(kept.records, recorder->recording->records, (size_t)kept.count * sizeof(struct record));
  recorder->reset();
  return kept;
}

int compare_records(const void* one, const void* other) {
  return memcmp(one, other, sizeof(struct record));
}

void check_same(const char* what, struct kept alone, struct kept beside) {
  CHECK(alone.count == beside.count, "%s: %d records alone, %d beside", what, alone.count,
        beside.count);
  for (int i = 0; i < alone.count && i < beside.count; ++i) {
    const struct record* a = &alone.records[i];
    const struct record* b = &beside.records[i];
    if (!CHECK(compare_records(a, b) == 0,
               "%s, record %d: alone %d type %d event %d parent %d group %d context %d %016llx; "
               "beside %d type %d event %d parent %d group %d context %d %016llx",
               what, i, a->what, a->type, a->event, a->parent, a->group, a->context,
               (unsigned long long)a->digest, b->what, b->type, b->event, b->parent, b->group,
               b->context, (unsigned long long)b->digest)) {
      break;
    }
  }
  free(alone.records);
  free(beside.records);
}
