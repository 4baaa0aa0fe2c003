// What a user would write by hand to time an all_reduce: a barrier, calls back to back, the
// slowest rank's time. Nothing of diapason is in it; bench/loop.py compares `diapason bench` with
// it.
//
//   mpirun -n 2 bench_loop BYTES CALLS ROUNDS      prints microseconds a call, one line a round
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench_loop BYTES CALLS ROUNDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int count = std::atoi(argv[1]) / 4;
  const int calls = std::atoi(argv[2]);
  const int rounds = std::atoi(argv[3]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> in(static_cast<size_t>(count), 1.0F);
  std::vector<float> out(static_cast<size_t>(count));
  for (int i = 0; i < 5; ++i) {
    MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; ++i) {
      MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    const double mine = MPI_Wtime() - begin;
    double slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%.4f\n", slowest / calls * 1e6);
  }
  MPI_Finalize();
  return 0;
}
