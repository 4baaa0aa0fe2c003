program calls
  use mpi
  implicit none
  integer :: ierror, request
  integer :: numbers(10)
  double precision :: before(10), after(10)
  call MPI_Init(ierror)
  numbers = 1
  before = 1
  call MPI_Bcast(numbers, 10, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  call MPI_Allreduce(before, after, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Ibarrier(MPI_COMM_WORLD, request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call MPI_Finalize(ierror)
end program calls
