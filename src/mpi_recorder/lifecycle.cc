// The functions that stand before those with which a program begins and ends its use of MPI.
#include <chrono>

#include "mpi_recorder/forward.h"
#include "mpi_recorder/words.h"

namespace diapason::mpi_recorder {
namespace {

constexpr auto kFlushLimit = std::chrono::milliseconds(1000);

template <typename Result, typename... Words>
Result Init(std::atomic<Result (*)(Words...)>* function, const char* name, Words... words) {
  const auto started = [] {
    if (depth > 0) return;
    if (Recorder* recorder = Recorder::Get()) recorder->writer().MarkInit();
  };
  const auto real = Real(function, name);
  if constexpr (std::is_void_v<Result>) {
    {
      const Inside inside;
      Pass(real, words...);
    }
    started();
  } else {
    Result result = kErrorOther;
    {
      const Inside inside;
      result = Pass(real, words...);
    }
    if (result == 0) started();
    return result;
  }
}

// MPI_Finalize and MPI_Abort, which may not return: what was recorded is in the file before.
template <typename Result, typename... Words>
Result End(bool in_order, std::atomic<Result (*)(Words...)>* function, const char* name,
           Words... words) {
  Recorder* recorder = depth == 0 ? Recorder::Started() : nullptr;
  if (recorder != nullptr) {
    if (in_order) recorder->writer().MarkFinalize();
    recorder->writer().Flush(kFlushLimit);
  }
  const Inside inside;
  return Pass(Real(function, name), words...);
}

}  // namespace

#define DIAPASON_INIT(result, symbol, words)                             \
  DIAPASON_EXPORT result symbol(DIAPASON_PARAMETERS(words)) {            \
    static std::atomic<result (*)(DIAPASON_TYPES(words))> real{nullptr}; \
    return Init(&real, #symbol, DIAPASON_ARGUMENTS(words));              \
  }
#define DIAPASON_END(result, symbol, words, in_order, ...)               \
  DIAPASON_EXPORT result symbol(DIAPASON_PARAMETERS(words)) {            \
    static std::atomic<result (*)(DIAPASON_TYPES(words))> real{nullptr}; \
    return End(in_order, &real, #symbol __VA_OPT__(, ) __VA_ARGS__);     \
  }

#define DIAPASON_INIT_FORTRAN(name, NAME, words) \
  DIAPASON_INIT(void, mpi_##name, words)         \
  DIAPASON_INIT(void, mpi_##name##_, words)      \
  DIAPASON_INIT(void, mpi_##name##__, words)     \
  DIAPASON_INIT(void, MPI_##NAME, words)         \
  DIAPASON_INIT(void, ompi_##name##_f, words)
#define DIAPASON_END_FORTRAN(name, NAME, words, in_order, ...)     \
  DIAPASON_END(void, mpi_##name, words, in_order, __VA_ARGS__)     \
  DIAPASON_END(void, mpi_##name##_, words, in_order, __VA_ARGS__)  \
  DIAPASON_END(void, mpi_##name##__, words, in_order, __VA_ARGS__) \
  DIAPASON_END(void, MPI_##NAME, words, in_order, __VA_ARGS__)     \
  DIAPASON_END(void, ompi_##name##_f, words, in_order, __VA_ARGS__)

DIAPASON_INIT(int, MPI_Init, 2)
DIAPASON_INIT(int, MPI_Init_thread, 4)
DIAPASON_INIT_FORTRAN(init, INIT, 1)
DIAPASON_INIT_FORTRAN(init_thread, INIT_THREAD, 3)
DIAPASON_END(int, MPI_Finalize, 0, true)
DIAPASON_END_FORTRAN(finalize, FINALIZE, 1, true, a0)
DIAPASON_END(int, MPI_Abort, 2, false, a0, a1)
DIAPASON_END_FORTRAN(abort, ABORT, 3, false, a0, a1, a2)

// The process ends by exit(), or by returning from main.
__attribute__((destructor)) static void EndOfProcess() { Recorder::Stop(); }

}  // namespace diapason::mpi_recorder
