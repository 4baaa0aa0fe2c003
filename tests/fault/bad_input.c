/* Policy files, settings and journals that cannot be used. Each costs a warning that names it; the
 * communicator is created, the library decides, and nobody's terminal is written to.
 *
 *   bad_input PLUGIN */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "host.h"

#define ANY ",-1,-1,-1,-1\n"
#define ROW "allreduce,0,999,ring,ll,-1" ANY

static struct choice ask_quietly(int api, bool* stepped_aside) {
  output_hold();
  struct comm comm = comm_open(api, 1, 8);
  *stepped_aside = comm.context == NULL;
  const struct question question = ordinary(ALLREDUCE, 500);
  const struct choice choice = decide(&comm, &question);
  comm_close(&comm);
  const long written = output_release();
  CHECK(written == 0, "%ld bytes went to stdout or stderr", written);
  return choice;
}

static void expect(int api, int algorithm, int protocol) {
  bool aside = false;
  const struct choice got = ask_quietly(api, &aside);
  CHECK(got.algorithm == algorithm && got.protocol == protocol && got.channels == 0,
        "%d/%d %d channels, not %d/%d", got.algorithm, got.protocol, got.channels, algorithm,
        protocol);
}

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* What is in a refused file, or what makes it. */
struct refused {
  const char* name;
  const char* content;
  void (*make)(const char* path); /* instead of the content */
};

static void make_nothing(const char* path) { (void)path; }

static void make_folder(const char* path) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) give_up("mkdir: %s", strerror(errno));
}

static void make_pipe(const char* path) {
  if (mkfifo(path, 0600) != 0 && errno != EEXIST) give_up("mkfifo: %s", strerror(errno));
}

static void make_unreadable(const char* path) {
  write_text(base_name(path), ROW);
  if (chmod(path, 0) != 0) give_up("chmod: %s", strerror(errno));
}

static void make_device(const char* path) {
  if (symlink("/dev/zero", path) != 0 && errno != EEXIST) give_up("symlink: %s", strerror(errno));
}

static void make_loop(const char* path) {
  if (symlink(path, path) != 0 && errno != EEXIST) give_up("symlink: %s", strerror(errno));
}

static void make_repeated(const char* path, const char* line, size_t count) {
  const size_t length = strlen(line);
  char* text = malloc(length * count + 1);
  if (text == NULL) give_up("out of memory");
  for (size_t i = 0; i < count; ++i) memcpy(text + i * length, line, length);
  write_file(base_name(path), text, length * count);
  free(text);
}

/* 17 MiB of rows that are fine, one by one. */
static void make_huge(const char* path) {
  make_repeated(path, ROW, 17 * 1024 * 1024 / strlen(ROW));
}
static void make_too_many_rows(const char* path) { make_repeated(path, ROW, 65537); }
static void make_long_line(const char* path) { make_repeated(path, "allreduce,", 10000); }

static void make_binary(const char* path) {
  unsigned char bytes[65536];
  unsigned seed = 1;
  for (size_t i = 0; i < sizeof(bytes); ++i) {
    seed = seed * 1103515245u + 12345u;
    bytes[i] = (unsigned char)(seed >> 16);
  }
  write_file(base_name(path), bytes, sizeof(bytes));
}

static const struct refused kRefused[] = {
    {"missing.conf", NULL, make_nothing},
    {"directory.conf", NULL, make_folder},
    {"pipe.conf", NULL, make_pipe},
    {"device.conf", NULL, make_device},
    {"loop.conf", NULL, make_loop},
    {"unreadable.conf", NULL, make_unreadable},
    {"huge.conf", NULL, make_huge},
    {"rows.conf", NULL, make_too_many_rows},
    {"line.conf", NULL, make_long_line},
    {"binary.conf", NULL, make_binary},
    {"empty.conf", "", NULL},
    {"text.conf", "this is no policy\n", NULL},
    {"one_typo.conf", ROW "allreduce,1000,1999,badring,ll,-1" ANY, NULL},
    {"fields.conf", ROW "allreduce,1000,1999,ring\n", NULL},
    {"reversed.conf", "allreduce,999,0,ring,ll,-1" ANY, NULL},
    {"negative.conf", "allreduce,-1,999,ring,ll,-1" ANY, NULL},
    {"overflow.conf", "allreduce,0,18446744073709551616,ring,ll,-1" ANY, NULL},
    {"unit.conf", "allreduce,0,128M,ring,ll,-1" ANY, NULL},
    {"channels.conf", "allreduce,0,999,ring,ll,65" ANY, NULL},
    {"alltoall.conf", "alltoall,0,999,ring,ll,-1" ANY, NULL},
    {"rccl.conf", "# diapason: library=rccl\n" ROW, NULL},
    {"gloo.conf", "# diapason: library=gloo\nallreduce,0,999,ring,-1,-1" ANY, NULL},
    {"key.conf", "# diapason: libary=nccl\n" ROW, NULL},
    {"version.conf", "# diapason: version=2\n" ROW, NULL},
    {"checksum.conf", "# diapason: checksum=fnv1a64:0123456789abcdef\n" ROW, NULL},
};

static void refused_policies(void) {
  for (size_t i = 0; i < sizeof(kRefused) / sizeof(kRefused[0]); ++i) {
    const struct refused* file = &kRefused[i];
    if (file->make == make_unreadable && geteuid() == 0) {
      say("SKIP: %s: root can read everything", file->name);
      continue;
    }
    const char* path = temp_path(file->name);
    if (file->make != NULL) {
      file->make(path);
    } else {
      write_text(file->name, file->content);
    }
    for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
      case_begin("%s, v%d", file->name, api);
      env_set("DIAPASON_POLICY", path);
      expect(api, UNDEF, UNDEF);
      CHECK(log_count(NCCL_LOG_WARN, path) >= 1, "no warning names the file");
    }
  }
}

/* A path longer than the system allows; also longer than the log may like. */
static void long_path(void) {
  case_begin("a path of 5000 characters");
  char path[5001];
  memset(path, 'p', sizeof(path) - 1);
  path[0] = '/';
  path[sizeof(path) - 1] = '\0';
  env_set("DIAPASON_POLICY", path);
  expect(5, UNDEF, UNDEF);
  CHECK(log_count(NCCL_LOG_WARN, "/pppp") == 1, "no warning names the file");
}

/* Names come from outside: they must never be read as formats. */
static void formats(void) {
  case_begin("a name full of formats");
  env_set("DIAPASON_POLICY", "/%s%n%d%s%s%s%s");
  env_set("DIAPASON_CHAIN", "%s%n%s%n");
  env_set("DIAPASON_JOURNAL", "/nowhere/%s%n");
  expect(5, UNDEF, UNDEF);
  CHECK(log_count(NCCL_LOG_WARN, "/%s%n%d%s%s%s%s") == 1, "the policy's name was changed");
  CHECK(log_count(NCCL_LOG_WARN, "%s%n%s%n") >= 1, "the chain's name was changed");
}

/* Another machine's policy is used: the user may know better. But not in silence. */
static void fingerprints(void) {
  for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
    case_begin("another fingerprint, v%d", api);
    use_policy("# diapason: fingerprint=\"8x Other GPU\"\n" ROW);
    env_set("DIAPASON_FINGERPRINT", "4x This GPU");
    expect(api, RING, LL);
    CHECK(log_count(NCCL_LOG_WARN, "8x Other GPU") == 1, "no warning");
    CHECK(log_count(NCCL_LOG_WARN, "4x This GPU") == 1, "which machine is this?");
    case_begin("the same fingerprint, v%d", api);
    use_policy("# diapason: fingerprint=\"8x Other GPU\"\n" ROW);
    env_set("DIAPASON_FINGERPRINT", "8x Other GPU");
    expect(api, RING, LL);
    CHECK(log_count(NCCL_LOG_WARN, "") == 0, "a warning");
  }
}

static const char* const kBadSettings[][2] = {
    {"DIAPASON_MODE", "bogus"},
    {"DIAPASON_MODE", "statik"},
    {"DIAPASON_LIBRARY", "gloo"},
    {"DIAPASON_OVERLAP", "maybe"},
    {"NCCL_WORKLOAD_OVERLAP", "2"},
    {"DIAPASON_REGBUFF", "2"},
    {"DIAPASON_LL128", "yes please"},
    {"DIAPASON_ALLGATHER_CHANNELS", "-1"},
    {"DIAPASON_SINGLE_SHAPE", "8"},
    {"DIAPASON_JOURNAL_RECORDS", "63"},
    {"DIAPASON_JOURNAL_RECORDS", "1048577"},
    {"DIAPASON_JOURNAL_RECORDS", "99999999999999999999999999"},
    {"DIAPASON_JOURNAL_RECORDS", "many"},
    {"DIAPASON_JOURNAL_LIMIT", "1KiB"},
    {"DIAPASON_JOURNAL_LIMIT", "banana"},
    {"DIAPASON_JOURNAL_LIMIT", "-5"},
    {"DIAPASON_JOURNAL_TABLES", "tables"},
};

/* What was meant cannot be known: the plugin steps aside, and says why once. */
static void bad_settings(void) {
  for (size_t i = 0; i < sizeof(kBadSettings) / sizeof(kBadSettings[0]); ++i) {
    for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
      case_begin("%s=%s, v%d", kBadSettings[i][0], kBadSettings[i][1], api);
      use_policy(ROW);
      env_set(kBadSettings[i][0], kBadSettings[i][1]);
      bool aside = false;
      const struct choice got = ask_quietly(api, &aside);
      CHECK(aside && got.algorithm == UNDEF && got.channels == 0, "it goes on");
      CHECK(log_count(NCCL_LOG_WARN, kBadSettings[i][0]) == 1, "no warning names it");
      CHECK(log_count(NCCL_LOG_WARN, "") == 1, "more than one warning");
    }
  }
  case_begin("two bad settings");
  use_policy(ROW);
  env_set("DIAPASON_MODE", "bogus");
  env_set("DIAPASON_LL128", "bogus");
  expect(5, UNDEF, UNDEF);
  CHECK(log_count(NCCL_LOG_WARN, "") == 1 && log_count(NCCL_LOG_WARN, "DIAPASON_MODE") == 1 &&
            log_count(NCCL_LOG_WARN, "DIAPASON_LL128") == 1,
        "one warning that names both");
}

/* A variable that is no setting is most likely a typo; the rest is as it was meant. */
static void unknown_settings(void) {
  case_begin("a misspelt setting");
  use_policy(ROW);
  env_set("DIAPASON_POLCY", "x");
  expect(5, RING, LL);
  CHECK(log_count(NCCL_LOG_WARN, "DIAPASON_POLCY") == 1, "no warning");
  case_begin("an empty setting is not set");
  use_policy(ROW);
  env_set("DIAPASON_MODE", "");
  env_set("DIAPASON_CHAIN", "");
  env_set("DIAPASON_JOURNAL", "");
  expect(5, RING, LL);
  CHECK(log_count(NCCL_LOG_WARN, "") == 0, "a warning");
}

/* No journal is no reason not to decide. */
static void bad_journals(void) {
  static const struct refused journals[] = {
      {"folder.jsonl", NULL, make_folder},          {"pipe.jsonl", NULL, make_pipe},
      {"device.jsonl", NULL, make_device},          {"loop.jsonl", NULL, make_loop},
      {"no/such/folder.jsonl", NULL, make_nothing},
  };
  for (size_t i = 0; i < sizeof(journals) / sizeof(journals[0]); ++i) {
    case_begin("journal %s", journals[i].name);
    use_policy(ROW);
    const char* path = temp_path(journals[i].name);
    journals[i].make(path);
    env_set("DIAPASON_JOURNAL", path);
    for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) expect(api, RING, LL);
    CHECK(log_count(NCCL_LOG_WARN, path) == TUNER_NEWEST_API,
          "%d warnings name it, not one a communicator", log_count(NCCL_LOG_WARN, path));
  }
}

int main(int count, char** arguments) {
  if (count != 2) give_up("usage: bad_input PLUGIN");
  host_load(arguments[1]);
  refused_policies();
  long_path();
  formats();
  fingerprints();
  bad_settings();
  unknown_settings();
  bad_journals();
  return checks_report("bad_input");
}
