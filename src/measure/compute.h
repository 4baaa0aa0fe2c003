#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/status.h"
#include "comm/gpu/runtime.h"
#include "diapason/comm.h"

namespace diapason::measure {

// Where a step computes, and how its collectives are ordered against that. On GPUs both are put
// into streams and wait for each other there; elsewhere the calling thread does one after the
// other. One thread uses it.
class Computer {
 public:
  virtual ~Computer() = default;

  // Memory for collectives, kept until the end.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual Memory memory() const = 0;

  // Finds out what a second of compute is. All ranks do so at the same time: where they share a
  // processor or a GPU, they do it while they compute as well.
  virtual Status Calibrate() = 0;
  // Compute has taken `factor` times what it should.
  virtual void Correct(double factor) = 0;

  // Computes for so long. Where that is done by this thread, `progress` is called now and then.
  virtual Status Compute(double seconds, const std::function<void()>& progress) = 0;

  // The stream for a communicator's collectives. Null: there are none, and the caller that needs
  // the result of a collective waits for it.
  virtual void* Stream(int /*communicator*/) const { return nullptr; }
  // Around the start of a bucket's collective: it begins after the compute so far.
  virtual Status BeforeStart(int /*communicator*/, size_t /*bucket*/) { return {}; }
  virtual Status AfterStart(int /*communicator*/, size_t /*bucket*/) { return {}; }
  // Compute from here on begins after the bucket's collective.
  virtual Status Join(size_t /*bucket*/) { return {}; }
  // Until everything is done, at most to the limit. `look` is called now and then: its error ends
  // the wait.
  virtual Status Finish(const std::function<Status()>& /*look*/) { return {}; }
};

struct ComputerOptions {
  double step_seconds = 0;  // what a step computes
  int communicators = 1;
  size_t buckets = 0;
  int threads = 1;
  std::chrono::duration<double> limit{60};
};

// On the processor, with so many threads.
std::unique_ptr<Computer> CpuComputer(const ComputerOptions& options);
// On the simulated cluster's clock.
std::unique_ptr<Computer> SimulatedComputer(Group* group);
// On a GPU. The device stays bound to the calling thread until the computer's end.
Result<std::unique_ptr<Computer>> GpuComputer(comm::gpu::Runtime* runtime, int device,
                                              const ComputerOptions& options);

// What the group's backend computes on.
Result<std::unique_ptr<Computer>> MakeComputer(Group* group, const ComputerOptions& options);

}  // namespace diapason::measure
