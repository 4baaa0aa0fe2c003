/* The calls of diapason.h: a program pins a configuration for all of its communicators. */
#include "drive.h"
#include "harness.h"

#define POLICY "allreduce,0,999,tree,ll,2" ANY

static struct choice ask_once(int api) {
  struct comm comm = comm_open(api, 1, 8);
  const struct question question = ordinary(ALLREDUCE, 500);
  const struct choice choice = decide(&comm, &question);
  comm_close(&comm);
  return choice;
}

static void expect_counts(unsigned long long asked, unsigned long long applied) {
  unsigned long long seen[2] = {99, 99};
  host.pin_counts(&seen[0], &seen[1]);
  CHECK(seen[0] == asked && seen[1] == applied, "%llu asked and %llu applied, not %llu and %llu",
        seen[0], seen[1], asked, applied);
}

static void expect(int api, int algorithm, int protocol, int channels) {
  const struct choice got = ask_once(api);
  CHECK(got.algorithm == algorithm && got.protocol == protocol && got.channels == channels,
        "%d/%d %d channels, not %d/%d %d", got.algorithm, got.protocol, got.channels, algorithm,
        protocol, channels);
}

static void begin(const char* what, int api) {
  case_begin("%s, v%d", what, api);
  use_policy(POLICY);
  claimed_version = 22105;
}

static void pin_wins(int api) {
  begin("a pin wins over the policy", api);
  expect(api, TREE, LL, 2);
  CHECK(host.pin(RING, SIMPLE, 5) == 0, "refused");
  expect(api, RING, SIMPLE, 5);
  expect(api, RING, SIMPLE, 5);
  expect_counts(2, 2);
  CHECK(host.pin(RING, LL, 0) == 0, "refused");
  expect_counts(0, 0);
  expect(api, RING, LL, 0);
  host.unpin();
  expect(api, TREE, LL, 2);
  expect_counts(1, 1); /* questions without a pin do not count */
}

static void unavailable_pins(int api) {
  begin("a pin that is not on offer", api);
  CHECK(host.pin(PAT, SIMPLE, 5) == 0, "refused");
  expect(api, UNDEF, UNDEF, 0);
  expect_counts(1, 0);
  CHECK(host.pin(15, 7, 0) == 0, "refused"); /* beyond every table there is */
  expect(api, UNDEF, UNDEF, 0);
  expect_counts(1, 0);
  host.unpin();
}

static void pins_without_policy(int api) {
  case_begin("a pin needs no policy, v%d", api);
  claimed_version = 22105;
  host.pin(RING, SIMPLE, 3);
  expect(api, RING, SIMPLE, 3);
  env_set("DIAPASON_MODE", "observe");
  expect(api, RING, SIMPLE, 3); /* measuring and observing go together */
  env_set("DIAPASON_MODE", "off");
  expect(api, UNDEF, UNDEF, 0);
  expect_counts(2, 2);
  host.unpin();
}

static void partial_pins(int api) {
  begin("half a pin", api);
  host.pin(UNDEF, UNDEF, 6);
  expect(api, UNDEF, UNDEF, 6);
  host.pin(RING, UNDEF, 0);
  if (api <= 2) {
    expect(api, UNDEF, UNDEF, 0);
  } else {
    expect(api, RING, LL, 0);
  }
  host.unpin();
}

/* What holds for rows holds for pins: no count where the library would not check it. */
static void unsafe_pins(int api) {
  if (api <= 2) return; /* never apply collnet_direct */
  begin("a pinned count for collnet", api);
  host.pin(COLLNET_DIRECT, SIMPLE, 9);
  expect(api, COLLNET_DIRECT, SIMPLE, 0);
  host.pin(RING, LL, 127); /* RCCL's most, on NCCL */
  expect(api, RING, LL, 64);
  host.unpin();
}

/* From 2.29 on a count for allgather is as unsafe as one for collnet, whoever asks for it. */
static void pinned_allgather(void) {
  case_begin("a pinned count for allgather on 2.30");
  claimed_version = 23007;
  struct comm comm = comm_open(6, 1, 8);
  host.pin(RING, SIMPLE, 9);
  const struct question question = ordinary(ALLGATHER, 500);
  const struct choice got = decide(&comm, &question);
  CHECK(got.algorithm == RING && got.protocol == SIMPLE, "%d/%d", got.algorithm, got.protocol);
  CHECK(got.channels == 0, "%d channels", got.channels);
  host.unpin();
  comm_close(&comm);
}

static void refused_pins(void) {
  static const int bad[][3] = {{-2, 0, 0},         {16, 0, 0},         {0, -2, 0},
                               {0, 8, 0},          {0, 0, -1},         {0, 0, 128},
                               {2147483647, 0, 0}, {0, 0, 2147483647}, {-2147483647 - 1, 0, 0}};
  begin("numbers out of range", 5);
  host.pin(RING, SIMPLE, 5);
  expect(5, RING, SIMPLE, 5);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    CHECK(host.pin(bad[i][0], bad[i][1], bad[i][2]) == -1, "%d %d %d is accepted", bad[i][0],
          bad[i][1], bad[i][2]);
  }
  expect_counts(1, 1); /* nothing changed */
  expect(5, RING, SIMPLE, 5);
  host.pin_counts(NULL, NULL);
  host.unpin();
}

void drive_pins(void) {
  for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
    pin_wins(api);
    unavailable_pins(api);
    pins_without_policy(api);
    partial_pins(api);
    unsafe_pins(api);
  }
  pinned_allgather();
  refused_pins();
}
