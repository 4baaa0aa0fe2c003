#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/profiler_abi.h"

// Plays the part of a collective library for one rank: the callbacks of NCCL 2.28 in their order,
// with a cost table and kernel times of our own. Nothing is communicated; what matters is which
// configuration each rank ends up with, call by call.
namespace played {

struct Choice {
  int algorithm = -1;
  int protocol = -1;
  int channels = 0;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// What runs for how long. Times are of the kernel, in microseconds.
struct Physics {
  virtual ~Physics() = default;
  virtual double Cost(size_t bytes, int algorithm, int protocol) const = 0;  // -1: not offered
  virtual double Time(size_t bytes, const Choice& choice, uint64_t call, int rank) const = 0;
};

// The example of the GPU lab: ring/ll or ring/simple by default, trees better in the middle.
class LabPhysics : public Physics {
 public:
  double Cost(size_t bytes, int algorithm, int protocol) const override;
  double Time(size_t bytes, const Choice& choice, uint64_t call, int rank) const override;
};

struct Plugin {
  const diapason::plugin::abi::TunerV5* tuner = nullptr;
  const diapason::plugin::abi::ProfilerV5<diapason::plugin::abi::EventV5>* profiler = nullptr;
  void (*step)() = nullptr;
  int (*report)(const char*, unsigned long long, double) = nullptr;
};
// Exits with a message when it cannot be loaded.
Plugin LoadPlugin(const std::string& path);

// One communicator on one rank.
class Communicator {
 public:
  struct Options {
    uint64_t id = 1;
    int ranks = 1;
    int rank = 0;
    int nodes = 1;
    bool profiler = true;
  };
  // `status` is what the tuner's init has returned.
  Communicator(const Plugin& plugin, const Physics& physics, const Options& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int status = 0;

  // How a call is made.
  enum class Way {
    kEager,
    kSimulated,    // asked about and never launched
    kCaptured,     // into a graph: no Coll event until it is replayed
    kNonBlocking,  // question and launch on another thread, after the call has returned
    kLate,         // the Coll event comes from another thread, after the group has ended
  };
  // One allreduce. Returns what ran, or the plugin's error in *error.
  Choice AllReduce(size_t bytes, Way way, int* error);
  // Several in one group: two of the same size are asked about as one.
  std::vector<Choice> Group(const std::vector<size_t>& bytes, int* error);
  // A send or receive: a group and a kernel of its own, and no question.
  void PointToPoint();
  // The captured call runs again.
  void Replay(size_t bytes, const Choice& choice);

  double last_microseconds() const { return last_; }
  // From now on the library says that another algorithm ran than was chosen.
  void MisreportRuns(bool misreport) { misreport_ = misreport; }

 private:
  void* Start(uint64_t type, void* parent, size_t bytes, const Choice& choice, bool captured);
  Choice Ask(size_t bytes, int* error);
  void Run(size_t bytes, const Choice& choice, void* call, bool timed);

  const Plugin& plugin_;
  const Physics& physics_;
  const Options options_;
  void* tuner_ = nullptr;
  void* profiler_ = nullptr;
  uint64_t sequence_ = 0;
  uint64_t gpu_clock_ = 1000000;
  void* captured_call_ = nullptr;
  double last_ = 0;
  bool misreport_ = false;
};

// The library's own logger: hands every line to whoever listens.
using Listener = void (*)(bool warning, const char* text);
void ListenToLog(Listener listener);

// The mask the plugin has set: one word for the process, as in the library.
int Mask();

}  // namespace played
