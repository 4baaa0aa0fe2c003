// What the recorder of MPI calls costs: calls through it (MPI_) and past it (PMPI_) in turns, on a
// communicator of one rank, where Open MPI itself has hardly anything to do.
//
// Runs under the preloaded recorder: `./dev bench mpi-record`.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kCalls = 4000, kTurns = 201 };  // the recorder's buffer holds the calls of a turn

static double in[64];
static double out[64];
static const int one[1] = {8};
static const int place[1] = {0};

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ByValue(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

#define LOOP(call)                               \
  do {                                           \
    const double start = Now();                  \
    for (int i = 0; i < kCalls; ++i) (void)call; \
    return (Now() - start) / kCalls;             \
  } while (0)

// BOTH(name, arguments): nanoseconds of a call, without and with the recorder.
#define BOTH(name, arguments)                                      \
  static double Plain##name(void) { LOOP(PMPI_##name arguments); } \
  static double Recorded##name(void) { LOOP(MPI_##name arguments); }
BOTH(Barrier, (MPI_COMM_SELF))
BOTH(Bcast, (in, 8, MPI_DOUBLE, 0, MPI_COMM_SELF))
BOTH(Allreduce, (in, out, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF))
BOTH(Allgather, (in, 8, MPI_DOUBLE, out, 8, MPI_DOUBLE, MPI_COMM_SELF))
BOTH(Alltoallv, (in, one, place, MPI_DOUBLE, out, one, place, MPI_DOUBLE, MPI_COMM_SELF))

static void Compare(const char* name, double (*plain)(void), double (*recorded)(void)) {
  static double costs[kTurns];
  static double alone[kTurns];
  for (int i = 0; i < kTurns; ++i) {
    alone[i] = plain();
    costs[i] = recorded() - alone[i];
    usleep(15000);  // the recorder's thread empties its buffer
  }
  qsort(costs, kTurns, sizeof(costs[0]), ByValue);
  qsort(alone, kTurns, sizeof(alone[0]), ByValue);
  printf("%-14s %8.1f ns %8.1f ns  (10 to 90 %%: %.1f to %.1f ns)\n", name, alone[kTurns / 2],
         costs[kTurns / 2], costs[kTurns / 10], costs[kTurns * 9 / 10]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  printf("%-14s %11s %11s\n", "call", "alone", "recording");
  Compare("MPI_Barrier", PlainBarrier, RecordedBarrier);
  Compare("MPI_Bcast", PlainBcast, RecordedBcast);
  Compare("MPI_Allreduce", PlainAllreduce, RecordedAllreduce);
  Compare("MPI_Allgather", PlainAllgather, RecordedAllgather);
  Compare("MPI_Alltoallv", PlainAlltoallv, RecordedAlltoallv);
  MPI_Finalize();
  return 0;
}
