// An MPI program of iterations: allreduces of 64 KiB and broadcasts of 1 MiB between compute.
//
// steps [ITERATIONS [MICROSECONDS OF COMPUTE]]; prints a checksum, which depends on all results.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kSmall = 16384 / 2, kLarge = 1 << 20, kReductions = 8, kBroadcasts = 2 };

static double small[kSmall];  // of 64 KiB
static double sums[kSmall];
static char large[kLarge];

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void Compute(double seconds) {
  const double end = Now() + seconds;
  while (Now() < end) {
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int iterations = argc > 1 ? atoi(argv[1]) : 100;
  const double compute = argc > 2 ? atof(argv[2]) * 1e-6 : 100e-6;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kSmall; ++i) small[i] = rank + i;
  double checksum = 0;
  for (int i = 0; i < iterations; ++i) {
    Compute(compute);
    for (int j = 0; j < kReductions; ++j) {
      MPI_Allreduce(small, sums, kSmall, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      checksum += sums[(i + j) % kSmall];
    }
    for (int j = 0; j < kBroadcasts; ++j) {
      large[i % kLarge] = (char)(rank + i);
      MPI_Bcast(large, kLarge, MPI_CHAR, j, MPI_COMM_WORLD);
      checksum += large[i % kLarge];
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("checksum %.0f\n", checksum);
  MPI_Finalize();
  return 0;
}
