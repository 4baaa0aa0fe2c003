/* Where the policy comes from: a file, the overlap file, one variable. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "drive.h"
#include "harness.h"

#define PLAIN "allreduce,0,1000,ring,ll,-1" ANY
#define OVERLAPPED "allreduce,0,1000,tree,simple,-1" ANY

/* The answer to one question under the environment as it is, alike in all versions. */
static void expect_in_all(int algorithm, int protocol) {
  for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
    struct comm comm = comm_open(api, 1, 8);
    const struct question question = ordinary(ALLREDUCE, 500);
    const struct choice got = decide(&comm, &question);
    CHECK(got.algorithm == algorithm && got.protocol == protocol, "v%d: %d/%d, not %d/%d", api,
          got.algorithm, got.protocol, algorithm, protocol);
    comm_close(&comm);
  }
}

static void files(void) {
  case_begin("no policy");
  expect_in_all(UNDEF, UNDEF);
  CHECK(log_count(NCCL_LOG_WARN, "") == 0, "no policy is nothing to warn about");
  case_begin("DIAPASON_POLICY");
  const char* plain = use_policy(PLAIN);
  expect_in_all(RING, LL);
  CHECK(log_count(NCCL_LOG_INFO, plain) == NEWEST, "the log names the policy once a communicator");
  case_begin("NCCL_TUNER_CONFIG_FILE");
  env_set("NCCL_TUNER_CONFIG_FILE", plain);
  expect_in_all(RING, LL);
  case_begin("settings for learning without learning");
  env_set("NCCL_TUNER_CONFIG_FILE", plain);
  env_set("NCCL_TUNER_EPS", "0.1");
  env_set("NCCL_PROFILER_PLUGIN", "/nowhere/libnccl-tuner-diapason.so");
  expect_in_all(RING, LL);
  CHECK(log_count(NCCL_LOG_WARN, "NCCL_TUNER_EPS has an effect only while learning") == 1,
        "it is said once");
  CHECK(log_count(NCCL_LOG_WARN, "NCCL_PROFILER_PLUGIN names a file that is not here") == 1,
        "and so is a file that is not there");
  case_begin("both names");
  env_set("NCCL_TUNER_CONFIG_FILE", "/nowhere");
  env_set("DIAPASON_POLICY", plain);
  expect_in_all(RING, LL);
}

static void overlap(void) {
  case_begin("overlap: the file beside");
  use_policy(PLAIN);
  const char* beside = write_text("policy.overlap.conf", OVERLAPPED);
  env_set("DIAPASON_OVERLAP", "1");
  expect_in_all(TREE, SIMPLE);

  case_begin("overlap: by the other name");
  use_policy(PLAIN);
  env_set("NCCL_WORKLOAD_OVERLAP", "1");
  expect_in_all(TREE, SIMPLE);

  case_begin("overlap: off");
  use_policy(PLAIN);
  env_set("DIAPASON_OVERLAP", "0");
  expect_in_all(RING, LL);

  case_begin("overlap: a file of its own");
  use_policy(PLAIN);
  env_set("DIAPASON_OVERLAP", "yes");
  env_set("DIAPASON_POLICY_OVERLAP", write_text("own.conf", "allreduce,0,1000,ring,simple,-1" ANY));
  expect_in_all(RING, SIMPLE);

  case_begin("overlap: its file is missing");
  use_policy(PLAIN);
  env_set("DIAPASON_OVERLAP", "1");
  remove(beside);
  expect_in_all(UNDEF, UNDEF);
  CHECK(log_count(NCCL_LOG_WARN, "policy.overlap.conf") == NEWEST, "no warning names the file");
}

/* The word that `diapason policy env` prints; false when the tool fails. */
static bool inline_word(const char* policy, char* word, size_t size) {
  char command[1024];
  snprintf(command, sizeof(command), "'%s' policy env --value '%s'", cli_path, policy);
  FILE* output = popen(command, "r");
  if (output == NULL) return false;
  const bool read = fgets(word, (int)size, output) != NULL;
  word[strcspn(word, "\n")] = '\0';
  return pclose(output) == 0 && read;
}

static void inlined(void) {
  char word[4096] = "";
  case_begin("inline policy");
  const char* plain = write_text("inline.conf", PLAIN "allgather,5,10,pat,simple,7,2,-1,3,-1\n");
  if (!CHECK(inline_word(plain, word, sizeof(word)), "`diapason policy env` failed")) return;
  env_set("DIAPASON_POLICY_INLINE", word);
  expect_in_all(RING, LL);

  case_begin("inline wins over files");
  env_set("DIAPASON_POLICY_INLINE", word);
  use_policy(OVERLAPPED);
  env_set("DIAPASON_OVERLAP", "1");
  expect_in_all(RING, LL);

  case_begin("inline, one character changed");
  word[strlen(word) / 2] ^= 1;
  env_set("DIAPASON_POLICY_INLINE", word);
  expect_in_all(UNDEF, UNDEF);
  CHECK(log_count(NCCL_LOG_WARN, "DIAPASON_POLICY_INLINE") == NEWEST,
        "no warning names the variable");
}

void drive_sources(void) {
  files();
  overlap();
  inlined();
}
