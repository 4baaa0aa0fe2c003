// calls PLAN OUTPUT: makes the collective calls that PLAN lists, one a line:
//
//   COLLECTIVE RANKS BYTES
//
// on the first RANKS ranks, and writes what watch.c saw of each to OUTPUT.<rank>, a line for every
// call this rank took part in: the line's number from 0, and the algorithm. BYTES are those of a
// policy: for allgather, reducescatter and alltoall of all ranks together. Results are checked.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostRanks = 16, kMostBytes = 1 << 24 };

static unsigned char* in;
static unsigned char* out;

static void Expect(int fine, const char* what, long line) {
  if (fine) return;
  fprintf(stderr, "calls: line %ld: %s\n", line, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int All(const unsigned char* data, long count, int value) {
  for (long i = 0; i < count; ++i) {
    if (data[i] != (unsigned char)value) return 0;
  }
  return 1;
}

// Every rank gives its number plus one, everywhere.
static void Call(const char* collective, MPI_Comm communicator, int bytes, long line) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const int sum = size * (size + 1) / 2;
  memset(in, rank + 1, (size_t)bytes);
  memset(out, 0, (size_t)bytes);
  if (strcmp(collective, "allreduce") == 0) {
    MPI_Allreduce(in, out, bytes, MPI_UINT8_T, MPI_SUM, communicator);
    Expect(All(out, bytes, sum), "wrong sum", line);
  } else if (strcmp(collective, "reduce") == 0) {
    MPI_Reduce(in, out, bytes, MPI_UINT8_T, MPI_SUM, 0, communicator);
    Expect(rank != 0 || All(out, bytes, sum), "wrong sum", line);
  } else if (strcmp(collective, "broadcast") == 0) {
    MPI_Bcast(in, bytes, MPI_UINT8_T, 0, communicator);
    Expect(All(in, bytes, 1), "wrong data", line);
  } else if (strcmp(collective, "reducescatter") == 0) {
    // The first ranks take what does not divide.
    int counts[kMostRanks];
    for (int i = 0; i < size; ++i) counts[i] = bytes / size + (i < bytes % size);
    MPI_Reduce_scatter(in, out, counts, MPI_UINT8_T, MPI_SUM, communicator);
    Expect(All(out, counts[rank], sum), "wrong sum", line);
  } else {
    const int part = bytes / size;
    Expect(part * size == bytes, "the bytes do not divide by the ranks", line);
    if (strcmp(collective, "allgather") == 0) {
      MPI_Allgather(in, part, MPI_UINT8_T, out, part, MPI_UINT8_T, communicator);
    } else if (strcmp(collective, "alltoall") == 0) {
      MPI_Alltoall(in, part, MPI_UINT8_T, out, part, MPI_UINT8_T, communicator);
    } else {
      Expect(0, "unknown collective", line);
    }
    for (int i = 0; i < size; ++i) {
      Expect(All(out + (size_t)i * (size_t)part, part, i + 1), "wrong data", line);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Expect(argc == 3 && size <= kMostRanks, "usage: calls PLAN OUTPUT, at most 16 ranks", 0);
  const char* (*watched)(void) = NULL;
  *(void**)&watched = dlsym(RTLD_DEFAULT, "diapason_watched");
  Expect(watched != NULL, "nobody watches: preload watch.c", 0);
  in = malloc(kMostBytes);
  out = malloc(kMostBytes);
  FILE* plan = fopen(argv[1], "r");
  char name[4096];
  snprintf(name, sizeof(name), "%s.%d", argv[2], rank);
  FILE* output = fopen(name, "w");
  Expect(in != NULL && out != NULL && plan != NULL && output != NULL, "cannot start", 0);

  MPI_Comm first[kMostRanks + 1];  // the first so many ranks
  for (int ranks = 2; ranks <= size; ++ranks) {
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &first[ranks]);
  }
  char collective[32];
  int ranks = 0;
  int bytes = 0;
  int read = 0;
  for (long line = 0; (read = fscanf(plan, "%31s %d %d", collective, &ranks, &bytes)) == 3;
       ++line) {
    Expect(ranks >= 2 && ranks <= size && bytes >= 0 && bytes <= kMostBytes, "out of range", line);
    if (rank >= ranks) continue;
    watched();
    Call(collective, first[ranks], bytes, line);
    fprintf(output, "%ld %s\n", line, watched());
  }
  Expect(read == EOF, "the plan is not to be read", 0);
  Expect(fclose(output) == 0, "the output is not written", 0);
  MPI_Finalize();
  return 0;
}
