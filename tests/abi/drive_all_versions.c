/* Drives every version of the tuner API of the built plugin, as NCCL and RCCL do, and checks what
 * comes back.
 *
 *   drive_all_versions PLUGIN DIAPASON FOLDER
 *
 * FOLDER holds librccl-fake.so and libframework-fake.so, see fake_library.c. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "harness.h"

const char* cli_path;
const char* fake_libraries;

void set_all(const char* const* settings, size_t count) {
  for (size_t i = 0; i < count && settings[i] != NULL; ++i) {
    char name[64];
    const char* equals = strchr(settings[i], '=');
    snprintf(name, sizeof(name), "%.*s", (int)(equals - settings[i]), settings[i]);
    env_set(name, equals + 1);
  }
}

static void run_scenario(const struct scenario* scenario, int api) {
  case_begin("%s, v%d", scenario->what, api);
  use_policy(scenario->rows);
  set_all(scenario->settings, sizeof(scenario->settings) / sizeof(scenario->settings[0]));
  claimed_version = scenario->version;
  struct question question = scenario->question;
  if (question.pipe_ops == 0) question.pipe_ops = 1;
  const bool own_shape = scenario->nodes != 0;
  struct comm comm =
      comm_open(api, own_shape ? scenario->nodes : 1, own_shape ? scenario->ranks : 8);
  const struct choice got = decide(&comm, &question);
  const struct choice* want = &scenario->expected;
  CHECK(got.algorithm == want->algorithm && got.protocol == want->protocol, "%d/%d, not %d/%d",
        got.algorithm, got.protocol, want->algorithm, want->protocol);
  CHECK(got.channels == want->channels, "%d channels, not %d", got.channels, want->channels);
  comm_close(&comm);
}

void run_scenarios(const struct scenario* scenarios, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const int failed_before = checks_failed();
    for (int api = scenarios[i].first; api <= scenarios[i].last; ++api) {
      run_scenario(&scenarios[i], api);
    }
    if (checks_failed() != failed_before) log_print();
  }
}

static void drive(void) {
  drive_edges();
  drive_rows();
  drive_sources();
  drive_tables();
  drive_channels();
  drive_pairs();
  drive_pins();
  drive_2_31();
}

int main(int count, char** arguments) {
  if (count != 4) give_up("usage: drive_all_versions PLUGIN DIAPASON FOLDER");
  cli_path = arguments[2];
  fake_libraries = arguments[3];
  host_load(arguments[1]);
  drive();
  /* Everything once more while a journal listens: the plugin then decides on another path, and
   * must not decide otherwise. The ring is large enough for no record to be lost. */
  env_keep("DIAPASON_JOURNAL", temp_path("journal.jsonl"));
  env_keep("DIAPASON_JOURNAL_RECORDS", "262144");
  drive();
  return checks_report("drive_all_versions");
}
