#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster.h"
#include "played_library.h"
#include "truth.h"

// The kinds of programs that played_program can be.
namespace played {

struct JobOptions {
  std::string kind;
  ClusterOptions cluster;
  int iterations = 40;
  bool steps = false;      // the program marks its iterations with diapason_step()
  bool real_time = false;  // an iteration takes as long in real time
  bool profiler = true;
  uint64_t job = 1;          // makes the ids of communicators
  int stop_after = 0;        // iterations, then the rank ends by stop(); 0: it does not
  void (*stop)() = nullptr;  // does not return
  int print_every = 0;       // iterations between two lines of rank 0 on standard output; 0: none
  void (*made_call)(uint32_t calls) = nullptr;  // after every call
};

// One rank of a job: the calls into the library, and the cluster that they take time on.
class Job {
 public:
  Job(const Plugin& plugin, const JobOptions& options);

  // False: the plugin returned an error.
  bool Run();
  const Truth& truth() const { return truth_; }
  const Cluster& cluster() const { return cluster_; }

  static bool IsKind(const std::string& kind);

 private:
  // A communicator of this rank. Groups: consecutive ranks, or those `apart` ranks from each other.
  struct Member {
    std::unique_ptr<ClusterPhysics> physics;
    std::unique_ptr<Communicator> communicator;
    size_t stream = 0;
  };
  Member Open(const char* name, size_t stream, int size, int apart);
  void Make(Member* member, Call call, Communicator::Way way = Communicator::Way::kEager);
  // A call that the program waits for before it computes on.
  void MakeAndWait(Member* member, Call call);
  void StartUp(Member* member);
  void Begin(bool usual = true);
  void Step(int n);

  void Decode(bool alike);
  void Ddp(bool tenth);
  void Fsdp();
  void Two();
  void ComesAndGoes();
  void Accumulate();
  void Evaluate();
  void Graph();
  void Replays();
  void Groups();
  void Nothing();

  const Plugin& plugin_;
  const JobOptions options_;
  Cluster cluster_;
  Truth truth_;
  uint64_t opened_ = 0;
  uint32_t calls_ = 0;
  int error_ = 0;
  int64_t last_step_ = 0;
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace played
