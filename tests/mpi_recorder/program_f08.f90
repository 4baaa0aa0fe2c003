program calls
  use mpi_f08
  implicit none
  type(MPI_Request) :: request
  integer :: numbers(10)
  double precision :: before(10), after(10)
  call MPI_Init()
  numbers = 1
  before = 1
  call MPI_Bcast(numbers, 10, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call MPI_Allreduce(before, after, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Ibarrier(MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Finalize()
end program calls
