// Makes every collective of MPI-3 once, blocking and not, in the order of domain/mpi_calls.h, with
// amounts that differ from call to call. record_test.py knows what has to be recorded.
//
// every_call [CASE]: what else happens to the program; record_test.py has the list.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMost = 4096 };

static int rank;
static int size;
static int in[kMost];
static int out[kMost];
static int counts[64];
static int places[64];
static MPI_Datatype types[64];
static MPI_Comm ring;  // a ring with a neighbour on both sides

static void Fail(const char* what) {
  fprintf(stderr, "every_call: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void Counts(int each) {
  for (int i = 0; i < size; ++i) {
    counts[i] = each;
    places[i] = i * each;
    types[i] = MPI_INT;
  }
}

static void Blocking(MPI_Comm comm) {
  MPI_Barrier(comm);
  MPI_Bcast(in, 11, MPI_INT, 0, comm);
  MPI_Gather(in, 12, MPI_INT, out, 12, MPI_INT, 0, comm);
  Counts(13);
  MPI_Gatherv(in, 13, MPI_INT, out, counts, places, MPI_INT, 0, comm);
  MPI_Scatter(in, 14, MPI_INT, out, 14, MPI_INT, 0, comm);
  Counts(15);
  MPI_Scatterv(in, counts, places, MPI_INT, out, 15, MPI_INT, 0, comm);
  MPI_Allgather(in, 16, MPI_INT, out, 16, MPI_INT, comm);
  Counts(17);
  MPI_Allgatherv(in, 17, MPI_INT, out, counts, places, MPI_INT, comm);
  MPI_Alltoall(in, 18, MPI_INT, out, 18, MPI_INT, comm);
  Counts(19);
  MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm);
  for (int i = 0; i < size; ++i) places[i] *= (int)sizeof(int);
  MPI_Alltoallw(in, counts, places, types, out, counts, places, types, comm);
  MPI_Reduce(in, out, 20, MPI_INT, MPI_SUM, 0, comm);
  MPI_Allreduce(in, out, 21, MPI_INT, MPI_SUM, comm);
  Counts(22);
  MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
  MPI_Reduce_scatter_block(in, out, 23, MPI_INT, MPI_SUM, comm);
  MPI_Scan(in, out, 24, MPI_INT, MPI_SUM, comm);
  MPI_Exscan(in, out, 25, MPI_INT, MPI_SUM, comm);
}

static void NonBlocking(MPI_Comm comm) {
  MPI_Request request;
#define WAIT MPI_Wait(&request, MPI_STATUS_IGNORE)
  MPI_Ibarrier(comm, &request), WAIT;
  MPI_Ibcast(in, 11, MPI_INT, 0, comm, &request), WAIT;
  MPI_Igather(in, 12, MPI_INT, out, 12, MPI_INT, 0, comm, &request), WAIT;
  Counts(13);
  MPI_Igatherv(in, 13, MPI_INT, out, counts, places, MPI_INT, 0, comm, &request), WAIT;
  MPI_Iscatter(in, 14, MPI_INT, out, 14, MPI_INT, 0, comm, &request), WAIT;
  Counts(15);
  MPI_Iscatterv(in, counts, places, MPI_INT, out, 15, MPI_INT, 0, comm, &request), WAIT;
  MPI_Iallgather(in, 16, MPI_INT, out, 16, MPI_INT, comm, &request), WAIT;
  Counts(17);
  MPI_Iallgatherv(in, 17, MPI_INT, out, counts, places, MPI_INT, comm, &request), WAIT;
  MPI_Ialltoall(in, 18, MPI_INT, out, 18, MPI_INT, comm, &request), WAIT;
  Counts(19);
  MPI_Ialltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm, &request), WAIT;
  for (int i = 0; i < size; ++i) places[i] *= (int)sizeof(int);
  MPI_Ialltoallw(in, counts, places, types, out, counts, places, types, comm, &request), WAIT;
  MPI_Ireduce(in, out, 20, MPI_INT, MPI_SUM, 0, comm, &request), WAIT;
  MPI_Iallreduce(in, out, 21, MPI_INT, MPI_SUM, comm, &request), WAIT;
  Counts(22);
  MPI_Ireduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm, &request), WAIT;
  MPI_Ireduce_scatter_block(in, out, 23, MPI_INT, MPI_SUM, comm, &request), WAIT;
  MPI_Iscan(in, out, 24, MPI_INT, MPI_SUM, comm, &request), WAIT;
  MPI_Iexscan(in, out, 25, MPI_INT, MPI_SUM, comm, &request), WAIT;
}

static void Neighbors(void) {
  MPI_Request request;
  const int dimensions[1] = {size};
  const int periods[1] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periods, 0, &ring);
  MPI_Aint bytes[2] = {0, 27 * sizeof(int)};
  int two[2] = {27, 27};
  int apart[2] = {0, 27};
  MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
  MPI_Neighbor_allgather(in, 26, MPI_INT, out, 26, MPI_INT, ring);
  MPI_Ineighbor_allgather(in, 26, MPI_INT, out, 26, MPI_INT, ring, &request), WAIT;
  MPI_Neighbor_allgatherv(in, 27, MPI_INT, out, two, apart, MPI_INT, ring);
  MPI_Ineighbor_allgatherv(in, 27, MPI_INT, out, two, apart, MPI_INT, ring, &request), WAIT;
  MPI_Neighbor_alltoall(in, 28, MPI_INT, out, 28, MPI_INT, ring);
  MPI_Ineighbor_alltoall(in, 28, MPI_INT, out, 28, MPI_INT, ring, &request), WAIT;
  MPI_Neighbor_alltoallv(in, two, apart, MPI_INT, out, two, apart, MPI_INT, ring);
  MPI_Ineighbor_alltoallv(in, two, apart, MPI_INT, out, two, apart, MPI_INT, ring, &request), WAIT;
  MPI_Neighbor_alltoallw(in, two, bytes, ints, out, two, bytes, ints, ring);
  MPI_Ineighbor_alltoallw(in, two, bytes, ints, out, two, bytes, ints, ring, &request), WAIT;
  MPI_Comm_free(&ring);
}

static void Twice(void* from, void* to, int* length, MPI_Datatype* type) {
  (void)type;
  memcpy(to, from, (size_t)*length * sizeof(int));
}

// What arguments a call may leave undefined.
static void Unusual(void) {
  for (int i = 0; i < size; ++i) in[i] = rank;
  MPI_Allreduce(MPI_IN_PLACE, in, 31, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, out, 32, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoall(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, out, 33, MPI_INT, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, out, 34, MPI_INT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Gather(in, 34, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
  }
  MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Datatype column;
  MPI_Type_vector(5, 2, 4, MPI_DOUBLE, &column);  // 80 bytes
  MPI_Type_commit(&column);
  MPI_Bcast(out, 3, column, 0, MPI_COMM_WORLD);
  MPI_Type_free(&column);
  MPI_Op last;
  MPI_Op_create(Twice, 0, &last);
  MPI_Allreduce(in, out, 35, MPI_INT, last, MPI_COMM_WORLD);
  MPI_Op_free(&last);
  // Communicators that come and go: their handles are used again.
  for (int i = 0; i < 3; ++i) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, "half");
    MPI_Allgather(in, 36, MPI_INT, out, 36, MPI_INT, half);
    MPI_Comm_free(&half);
  }
  // Two groups that talk to each other.
  MPI_Comm mine, other;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine);
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &other);
  MPI_Allgather(in, 37, MPI_INT, out, 37, MPI_INT, other);
  const int root = rank % 2 == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(in, 38, MPI_INT, root, other);
  MPI_Gather(in, 39, MPI_INT, out, 39, MPI_INT, root, other);
  MPI_Comm_free(&other);
  MPI_Comm_free(&mine);
}

static void* Calls(void* comm) {
  for (int i = 0; i < 1000; ++i) MPI_Allreduce(in, out, 0, MPI_INT, MPI_SUM, *(MPI_Comm*)comm);
  return NULL;
}

static void Threads(int level) {
  if (level != MPI_THREAD_MULTIPLE) {
    printf("no threads\n");
    return;
  }
  MPI_Comm comms[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, Calls, &comms[i]);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; ++i) MPI_Comm_free(&comms[i]);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "threads") == 0) {
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    Threads(level);
    MPI_Finalize();
    return 0;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size * 40 > kMost || size > 64) Fail("too many ranks");
  if (strcmp(what, "unusual") == 0) {
    Unusual();
    MPI_Finalize();
    return 0;
  }
  Blocking(MPI_COMM_WORLD);
  if (strcmp(what, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (strcmp(what, "exit") == 0) exit(0);
  if (strcmp(what, "quit") == 0 || strcmp(what, "kill") == 0) {
    // The recorder's thread needs its time: without a record of its own, this waits until every
    // rank's file has its calls. A test that is gone does not leave it behind.
    alarm(1200);
    while (access(argv[2], F_OK) != 0) usleep(1000);
    if (strcmp(what, "quit") == 0) _exit(0);
    raise(SIGKILL);
  }
  if (strcmp(what, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) exit(0);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) Fail("the child failed");
  }
  NonBlocking(MPI_COMM_WORLD);
  Neighbors();
  MPI_Finalize();
  return 0;
}
