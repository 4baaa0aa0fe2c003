#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "diapason/comm.h"

namespace diapason::comm {

// A call that a backend has begun.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  // Until the call is done, at most to the deadline (then kTimeout).
  virtual Status Wait(Deadline deadline) = 0;
  // True when Wait would return at once.
  virtual bool Done() = 0;
  // The call was recorded into a GPU graph: there is nothing to wait for or to time.
  virtual bool Captured() const { return false; }
  // What the call took, once it is done; negative where the backend does not know. (From the start
  // to the caller's Wait is no answer: the caller may have done something else in between.)
  virtual double Seconds() const { return -1; }
};

// What a backend must do: move data. Everything else is done above it, once for all: arguments are
// checked, calls numbered, timed and bounded, errors named, wire types and coalescing resolved for
// those who cannot do them, buffers brought to where the backend can reach them.
//
// A backend therefore sees calls with valid arguments and count > 0, in host memory unless
// TakesDevice(), without `wire` unless ConvertsOnDevice(), without `tensors` unless Coalesces().
// One thread at a time calls it, except Interrupt().
class Communicator {
 public:
  virtual ~Communicator() = default;

  // Runs a call to its end. kTimeout when the deadline passed, kPeerLost when a rank has gone.
  // kUnavailable: the library does not offer what the call asks for, which only showed now; nothing
  // has happened on any rank, and the communicator is as good as before.
  virtual Status Run(const Call& call, Deadline deadline) = 0;
  // The same for an all_reduce in host memory with nothing chosen, within PlainLimit().
  virtual Status RunPlain(const void* in, void* out, size_t count, DataType type, ReduceOp reduce,
                          std::chrono::milliseconds limit) {
    return Run(AllReduceCall(in, out, count, type, reduce),
               std::chrono::steady_clock::now() + limit);
  }
  virtual Result<std::unique_ptr<PendingCall>> Start(const Call& call, Deadline deadline) = 0;

  // Makes a Run, Start or Wait that is stuck on another thread return soon. Called once at most, by
  // the watchdog, after the deadline; the communicator is only destroyed afterwards. A backend that
  // cannot return to its caller logs `reason` and ends the process here.
  virtual void Interrupt(const std::string& reason) noexcept = 0;

  // A call has failed and none will follow: lets go of the other ranks, so that they notice.
  virtual void Abandon() noexcept {}

  // Whether the call can run as it asks to: type, configuration, memory. Said before any rank
  // has begun, so that all ranks refuse alike.
  virtual Status CanRun(const Call& call) const = 0;

  // The most elements an all_reduce in host memory may have that CanRun would not even look at:
  // nothing chosen, no wire type, any type and reduction. 0: always ask.
  virtual size_t PlainLimit() const { return 0; }

  virtual bool TakesDevice() const { return false; }
  virtual bool ConvertsOnDevice() const { return false; }
  virtual bool Coalesces() const { return false; }

  // The communicator of some of our ranks. `members` are ranks of this communicator, in their new
  // order, and contain our own; every rank of this communicator calls it, those who belong nowhere
  // with an empty list (they get a null pointer). `name` is unique in the job.
  virtual Result<std::unique_ptr<Communicator>> Split(const std::vector<int>& members,
                                                      const std::string& name,
                                                      Deadline deadline) = 0;

  // What runs, where that is more than the backend's name: which simulated cluster.
  virtual std::string Description() const { return ""; }
  // Backends that run without our bootstrap know by themselves where the ranks are.
  virtual int LocalRank() const { return -1; }
  virtual int Nodes() const { return 0; }
  virtual double LinkPeak() const { return 0; }  // bytes per second, 0: not known
  // Where time is simulated; real backends answer with a negative number.
  virtual double Now() const { return -1; }
  virtual Status SimulateCompute(double /*seconds*/) {
    return Unavailable("only the simulated cluster simulates compute");
  }
};

}  // namespace diapason::comm
