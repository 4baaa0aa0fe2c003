// mpi_level [LEVEL]: with how many threads MPI may be used once a group is there. Without LEVEL the
// group starts MPI, and it must be for several threads at once, since groups are independent. With
// one (a number of MPI's) the program has started it, and the group must leave it as it is: Open
// MPI forgets its locks where anybody names a lower level later. Exit status: 0 so it is, 1 it is
// not.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "diapason/comm.h"

int main(int argc, char** argv) {
  int expected = MPI_THREAD_MULTIPLE;
  const bool own = argc > 1;
  if (own) MPI_Init_thread(&argc, &argv, std::atoi(argv[1]), &expected);
  diapason::GroupOptions options;
  options.backend = "mpi";
  auto group = diapason::Group::Create(options);
  if (!group.ok()) {
    std::fprintf(stderr, "%s\n", group.status().message().c_str());
    return 1;
  }
  int level = -1;
  MPI_Query_thread(&level);
  std::printf("level %d, expected %d\n", level, expected);
  group.value().reset();
  if (own) MPI_Finalize();
  return level == expected ? 0 : 1;
}
