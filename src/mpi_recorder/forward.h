#pragma once

#include <atomic>
#include <string>
#include <type_traits>

#include "mpi_recorder/amount.h"
#include "mpi_recorder/recorder.h"

// What stands between a program and a function of MPI.
namespace diapason::mpi_recorder {

// How many calls this thread is inside of. MPICH's Fortran functions call those of C: the outermost
// counts. A program that leaves a call by longjmp is not recorded in that thread any more.
inline thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;

class Inside {
 public:
  Inside() { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

inline constexpr int kErrorOther = 16;  // MPI_ERR_OTHER of Open MPI; any error would do

// The function itself. Null: no MPI library has it, and none can have called it.
template <typename Function>
Function Real(std::atomic<Function>* real, const char* name) {
  Function known = real->load(std::memory_order_relaxed);
  if (known != nullptr) return known;
  known = reinterpret_cast<Function>(FindSymbol(name));
  if (known == nullptr)
    known = reinterpret_cast<Function>(FindSymbol(("P" + std::string(name)).c_str()));
  real->store(known, std::memory_order_relaxed);
  return known;
}

template <typename Result, typename... Words>
Result Pass(Result (*real)(Words...), Words... words) {
  if constexpr (std::is_void_v<Result>) {
    if (real != nullptr) real(words...);
  } else {
    return real != nullptr ? real(words...) : kErrorOther;
  }
}

// Calls a collective and records it. `kComm` is the place of the communicator.
template <typename Binding, MpiCall kCall, int kComm, typename Result, typename... Words>
Result Collective(std::atomic<Result (*)(Words...)>* function, const char* name, void* site,
                  Words... words) {
  const auto real = Real(function, name);
  Recorder* recorder = depth == 0 ? Recorder::Get() : nullptr;
  if (recorder == nullptr) return Pass(real, words...);
  constexpr MpiCount kCount = kMpiCalls[static_cast<size_t>(kCall)].count;
  const Word arguments[] = {words...};
  const MpiLibrary& library = recorder->library();
  mpi_record::CallRecord record;
  record.call = static_cast<uint8_t>(kCall);
  record.site = reinterpret_cast<uint64_t>(site);
  if (Comm* comm = recorder->comms().Find(Binding::Comm(library, arguments[kComm]))) {
    record.communicator = comm->number;
    record.sequence = comm->calls.fetch_add(1, std::memory_order_relaxed) + 1;
    const Amount amount = CallAmount<Binding, kCount>(library, *comm, arguments);
    record.bytes = amount.bytes;
    record.type_bytes = amount.type_bytes;
    record.flags = Binding::kFlags;
    if (NotCommutative<Binding, kCount>(library, arguments)) {
      record.flags |= mpi_record::kNotCommutative;
    }
  }
  const TickClock& clock = recorder->clock();
  const auto finish = [&] {
    record.duration_ns = clock.Now() - record.start_ns;
    recorder->writer().Add(record);
  };
  const Inside inside;
  record.start_ns = clock.Now();
  if constexpr (std::is_void_v<Result>) {
    Pass(real, words...);
    finish();
  } else {
    const Result result = Pass(real, words...);
    finish();
    return result;
  }
}

}  // namespace diapason::mpi_recorder
