#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "diapason/comm.h"

namespace diapason::comm {

// A call that a backend has started.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  // Waits until the call is done, at most until the deadline (then kTimeout).
  virtual Status Wait(Deadline deadline) = 0;
  // True when Wait would return at once.
  virtual bool Done() = 0;
  // The call was captured into a GPU graph: there is nothing to wait for or to time.
  virtual bool Captured() const { return false; }
  // The duration of the call in seconds, once it is done; negative if the backend does not know it.
  // (The time from the start to the caller's Wait is no substitute: the caller may do other work in
  // between.)
  virtual double Seconds() const { return -1; }
};

// What a backend implements: moving data. The layers above it do the rest, once for all backends:
// they check arguments, number, time and bound the calls, name errors, resolve wire types and
// coalescing for backends without them, and stage buffers where the backend can reach them.
//
// A backend therefore gets calls with valid arguments and count > 0, in host memory unless
// TakesDevice(), without `wire` unless ConvertsOnDevice(), without `tensors` unless Coalesces().
// One thread at a time calls it, except for Interrupt().
class Communicator {
 public:
  virtual ~Communicator() = default;

  // Runs a call to completion. kTimeout: the deadline passed; kPeerLost: a rank has ended.
  // kUnavailable: the library turned out not to support the call; nothing has happened on any rank,
  // and the communicator stays usable.
  virtual Status Run(const Call& call, Deadline deadline) = 0;
  // The same for an all_reduce in host memory with the default configuration, within PlainLimit().
  virtual Status RunPlain(const void* in, void* out, size_t count, DataType type, ReduceOp reduce,
                          std::chrono::milliseconds limit) {
    return Run(AllReduceCall(in, out, count, type, reduce),
               std::chrono::steady_clock::now() + limit);
  }
  virtual Result<std::unique_ptr<PendingCall>> Start(const Call& call, Deadline deadline) = 0;

  // Makes a Run, Start or Wait that is stuck on another thread return soon. The watchdog calls it
  // at most once, after the deadline; afterwards the communicator can only be destroyed. A backend
  // that cannot return to its caller logs `reason` and ends the process here.
  virtual void Interrupt(const std::string& reason) noexcept = 0;

  // A call has failed and none will follow: disconnects from the other ranks, so that they notice.
  virtual void Abandon() noexcept {}

  // Whether the backend can run the call: type, configuration, memory. Called before any rank has
  // begun, so that all ranks refuse alike.
  virtual Status CanRun(const Call& call) const = 0;

  // The number of elements up to which an all_reduce in host memory, with default configuration, no
  // wire type, any type and reduction, needs no CanRun. 0: always call CanRun.
  virtual size_t PlainLimit() const { return 0; }

  virtual bool TakesDevice() const { return false; }
  virtual bool ConvertsOnDevice() const { return false; }
  virtual bool Coalesces() const { return false; }

  // A communicator of some of the ranks. `members` are ranks of this communicator, in their new
  // order, including the caller; every rank of this communicator calls it, ranks without a group
  // with an empty list (they get a null pointer). `name` is unique in the job.
  virtual Result<std::unique_ptr<Communicator>> Split(const std::vector<int>& members,
                                                      const std::string& name,
                                                      Deadline deadline) = 0;

  // Details beyond the backend's name, such as the simulated cluster.
  virtual std::string Description() const { return ""; }
  // Backends with their own bootstrap know where the ranks are.
  virtual int LocalRank() const { return -1; }
  virtual int Nodes() const { return 0; }
  virtual double LinkPeak() const { return 0; }  // bytes per second, 0: not known
  // The simulated time; real backends return a negative number.
  virtual double Now() const { return -1; }
  virtual Status SimulateCompute(double /*seconds*/) {
    return Unavailable("only the simulated cluster simulates compute");
  }
};

}  // namespace diapason::comm
