#include "comm/backend.h"

#include <mpi.h>
#include <unistd.h>

#include <cstring>

#include "base/environment.h"
#include "base/text.h"
#include "base/version.h"
#include "comm/backends/mpi/communicator.h"
#include "comm/backends/mpi/library.h"
#include "comm/watchdog.h"

namespace diapason::comm {
namespace {

class MpiBackend : public Backend {
 public:
  BackendInfo Look(const RankInfo& place) const override {
    BackendInfo info;
    info.version = MpiVersion();
    const Environment& environment = ProcessEnvironment();
    const bool launched = environment.Get("OMPI_COMM_WORLD_SIZE").has_value() ||
                          environment.Get("PMIX_RANK").has_value();
    if (place.size > 1 && !launched) {
      info.reason = "the ranks were not started by mpirun or by srun --mpi=pmix, so each is alone";
      return info;
    }
    info.usable = true;
    info.devices = launched ? "as started by mpirun or srun" : "for jobs started with mpirun";
    return info;
  }

  Result<std::unique_ptr<Communicator>> Create(const Start& start) override {
    // MPI_Init and the following calls cannot be cancelled: if a rank does not join, this can only
    // log the message and end the process.
    CallWatch watch([&start] {
      start.log(
          Format("diapason: rank {}: creating the group has reached its limit of {:g} s: not "
                 "every rank has started MPI. The job ends here",
                 start.place.rank, static_cast<double>(start.timeout.count()) * 1e-3));
      _exit(1);
    });
    watch.Begin(1, start.timeout);
    Result<std::unique_ptr<Communicator>> communicator = Connect(start);
    watch.End();
    return communicator;
  }

 private:
  static Result<std::unique_ptr<Communicator>> Connect(const Start& start) {
    RETURN_IF_ERROR(StartMpi(start.options->choose, start.place));
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != start.place.rank || size != start.place.size) {
      return Invalid(
          Format("the launcher's variables say rank {} of {}, and MPI says rank {} of {}",
                 start.place.rank, start.place.size, rank, size));
    }
    // A duplicate: the program's messages on MPI_COMM_WORLD never match diapason's.
    MPI_Comm copy = MPI_COMM_NULL;
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (code != MPI_SUCCESS) return FromMpi(code);
    return std::unique_ptr<Communicator>(std::make_unique<MpiCommunicator>(copy, start.log));
  }
};

}  // namespace
}  // namespace diapason::comm

extern "C" __attribute__((visibility("default"))) diapason::comm::Backend* diapason_comm_module(
    const char* version) {
  static diapason::comm::MpiBackend backend;
  return std::strcmp(version, diapason::kVersion) == 0 ? &backend : nullptr;
}
