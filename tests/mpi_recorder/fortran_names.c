// Calls MPI under each of the names that Fortran compilers give to its functions, as they would.
#include <mpi.h>

#define NAME(name)                                                                       \
  void name(const void* in, void* out, const int* count, const int* type, const int* op, \
            const int* comm, int* error)
NAME(mpi_allreduce);
NAME(mpi_allreduce_);
NAME(mpi_allreduce__);
NAME(MPI_ALLREDUCE);
NAME(ompi_allreduce_f);
void mpi_init_(int* error);
void mpi_finalize_(int* error);
void mpi_iallgather_(const void* in, const int* in_count, const int* in_type, void* out,
                     const int* out_count, const int* out_type, const int* comm, int* request,
                     int* error);
void mpi_alltoallw_(const void* in, const int* in_counts, const int* in_places, const int* in_types,
                    void* out, const int* out_counts, const int* out_places, const int* out_types,
                    const int* comm, int* error);
void mpi_gatherv_(const void* in, const int* count, const int* in_type, void* out,
                  const int* counts, const int* places, const int* out_type, const int* root,
                  const int* comm, int* error);

int main(void) {
  int error = 0;
  mpi_init_(&error);
  double in[64] = {0};
  double out[64] = {0};
  const int comm = MPI_Comm_c2f(MPI_COMM_WORLD);
  const int type = MPI_Type_c2f(MPI_DOUBLE);
  const int integer = MPI_Type_c2f(MPI_INT);
  const int op = MPI_Op_c2f(MPI_SUM);
  const int counts[] = {1, 2, 3, 4, 5, 6};
  mpi_allreduce(in, out, &counts[0], &type, &op, &comm, &error);
  mpi_allreduce_(in, out, &counts[1], &type, &op, &comm, &error);
  mpi_allreduce__(in, out, &counts[2], &type, &op, &comm, &error);
  MPI_ALLREDUCE(in, out, &counts[3], &type, &op, &comm, &error);
  ompi_allreduce_f(in, out, &counts[4], &type, &op, &comm, &error);
  int handle = 0;
  mpi_iallgather_(in, &counts[5], &integer, out, &counts[5], &integer, &comm, &handle, &error);
  MPI_Request request = MPI_Request_f2c(handle);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int seven[] = {7, 7};
  const int eight[] = {8, 8};
  const int places[] = {0, 64};
  const int types[] = {integer, integer};
  mpi_alltoallw_(in, seven, places, types, out, seven, places, types, &comm, &error);
  const int root = 0;
  mpi_gatherv_(in, &eight[0], &integer, out, eight, places, &integer, &root, &comm, &error);
  mpi_finalize_(&error);
  return error;
}
