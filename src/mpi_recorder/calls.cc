// The functions that stand before the collectives of MPI, made from the table of
// domain/mpi_calls.h: for C, and under the names that Fortran compilers give to theirs. Open MPI's
// Fortran functions call PMPI_ functions, which those for C do not see; ompi_..._f is what its
// module mpi_f08 calls.
#include "mpi_recorder/forward.h"
#include "mpi_recorder/words.h"

namespace diapason::mpi_recorder {

// The communicator is the last argument of a blocking call, and stands before the request of a
// non-blocking one.
constexpr int kCommOf[] = {
#define DIAPASON_ROW(Name, name, NAME, words, count, rules) (words) - 1, (words)-1,
    DIAPASON_MPI_CALLS(DIAPASON_ROW)
#undef DIAPASON_ROW
};

#define DIAPASON_COLLECTIVE(result, symbol, binding, call, words)                           \
  DIAPASON_EXPORT result symbol(DIAPASON_PARAMETERS(words)) {                               \
    static std::atomic<result (*)(DIAPASON_TYPES(words))> real{nullptr};                    \
    return Collective<binding, MpiCall::call, kCommOf[static_cast<size_t>(MpiCall::call)]>( \
        &real, #symbol, __builtin_return_address(0), DIAPASON_ARGUMENTS(words));            \
  }

#define DIAPASON_IN_C(Name, call, words) DIAPASON_COLLECTIVE(int, MPI_##Name, CBinding, call, words)
#define DIAPASON_IN_FORTRAN(name, NAME, call, words)                     \
  DIAPASON_COLLECTIVE(void, mpi_##name, FortranBinding, call, words)     \
  DIAPASON_COLLECTIVE(void, mpi_##name##_, FortranBinding, call, words)  \
  DIAPASON_COLLECTIVE(void, mpi_##name##__, FortranBinding, call, words) \
  DIAPASON_COLLECTIVE(void, MPI_##NAME, FortranBinding, call, words)     \
  DIAPASON_COLLECTIVE(void, ompi_##name##_f, FortranBinding, call, words)

// A request is one more word, and so is Fortran's error code.
#define DIAPASON_ROW(Name, name, NAME, words, count, rules)      \
  DIAPASON_IN_C(Name, k##Name, words)                            \
  DIAPASON_IN_C(I##name, kI##name, DIAPASON_NEXT(words))         \
  DIAPASON_IN_FORTRAN(name, NAME, k##Name, DIAPASON_NEXT(words)) \
  DIAPASON_IN_FORTRAN(i##name, I##NAME, kI##name, DIAPASON_NEXT(DIAPASON_NEXT(words)))
DIAPASON_MPI_CALLS(DIAPASON_ROW)
#undef DIAPASON_ROW

}  // namespace diapason::mpi_recorder
