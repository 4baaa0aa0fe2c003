#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/abi/profiler_abi.h"

// Plays the part of a collective library for one rank: the callbacks of NCCL 2.28 (or a later one,
// see PlayVersion) in their order, with a cost table and kernel times of our own. Nothing is
// communicated; what matters is which configuration each rank ends up with, call by call.
namespace played {

struct Choice {
  int algorithm = -1;
  int protocol = -1;
  int channels = 0;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// The collectives a tuner is asked about, by the library's numbers.
enum Collective { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce, kCollectives };

// What is called: `bytes` is what the tuner is asked about.
struct Call {
  int collective = kAllReduce;
  size_t bytes = 0;
  int selection = -1;  // from 2.31 on: the algorithm that the call's own configuration names
  friend auto operator<=>(const Call&, const Call&) = default;
};

// What runs for how long. Times are of the kernel, in microseconds.
struct Physics {
  virtual ~Physics() = default;
  virtual double Cost(size_t bytes, int algorithm, int protocol) const = 0;  // -1: not offered
  virtual double Time(size_t bytes, const Choice& choice, uint64_t call, int rank) const = 0;
  // When a call runs, in nanoseconds of the GPU's clock; called once for every run. False: the runs
  // of a communicator follow each other, and take Time().
  virtual bool Schedule(const Call& /*call*/, const Choice& /*choice*/, uint64_t* /*start_ns*/,
                        uint64_t* /*stop_ns*/) const {
    return false;
  }
};

// The example of the GPU lab: ring/ll or ring/simple by default, trees better in the middle.
class LabPhysics : public Physics {
 public:
  double Cost(size_t bytes, int algorithm, int protocol) const override;
  double Time(size_t bytes, const Choice& choice, uint64_t call, int rank) const override;
};

struct Plugin {
  const diapason::plugin::abi::TunerV5* tuner = nullptr;
  const diapason::plugin::abi::ProfilerV5<diapason::plugin::abi::EventV7>* profiler = nullptr;
  void (*step)() = nullptr;
  int (*report)(const char*, unsigned long long, double) = nullptr;
};
// Which library is played: 22809 unless told otherwise, before the plugin is loaded. From 2.30 on
// it speaks v6 of both interfaces, from 2.31 on v7 of the profiler's and from 2.32.6 on v7 of the
// tuner's; their callbacks begin as those of v5 do, and so do their events. From 2.31 on it takes
// the last of equal costs, reads back only what it offered, and uses a channel count only to lower
// its own.
void PlayVersion(int version);
// Exits with a message when it cannot be loaded.
Plugin LoadPlugin(const std::string& path);

// One communicator on one rank.
class Communicator {
 public:
  struct Options {
    uint64_t id = 1;
    const char* name = "played";
    int ranks = 1;
    int rank = 0;
    int nodes = 1;
    bool profiler = true;
    int channels = 2;         // the most it has, and what runs where nobody wants fewer
    bool asks_twice = false;  // about every call, as 2.29 and later may on some ranks
    // Before every call, about what is no call, as 2.31 and later may on some ranks: one bit for
    // each such question, see AskAhead.
    unsigned asks_ahead = 0;
    int own_channels = 0;  // what runs where nobody wants fewer; 0: `channels`
    int min_ctas = 0;      // NCCL_MIN_CTAS: from 2.31 on no call has fewer
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
  // One call. Returns what ran, or the plugin's error in *error.
  Choice Make(const Call& call, Way way, int* error);
  Choice AllReduce(size_t bytes, Way way, int* error) {
    return Make({kAllReduce, bytes}, way, error);
  }
  // Several in one group: two of the same size are asked about as one.
  std::vector<Choice> Group(const std::vector<size_t>& bytes, int* error);
  // One call on each of two communicators in one group, of which only the first is told; everything
  // else of the group, in both, has the first one's handle as its parent.
  static std::vector<Choice> Together(Communicator* first, Communicator* second, const Call& call,
                                      bool simulated, int* error);
  // A send and a receive in a group of their own: launched, and nobody is asked.
  void PointToPoint();
  // The captured call runs again. `told`: the library reports it, as where the network is used; the
  // graphs of one node run without the host.
  void Replay(size_t bytes, const Choice& choice, bool told = true);

  double last_microseconds() const { return last_; }
  // From now on the library says that another algorithm ran than was chosen.
  void MisreportRuns(bool misreport) { misreport_ = misreport; }

 private:
  void* Start(uint64_t type, void* parent, const Call& call, const Choice& choice, bool captured);
  void Stop(void* event);
  Choice Ask(const Call& call, int* error);
  void AskAhead(const Call& call, int* error);
  int AskTuner(const Call& call, size_t bytes, int pipe_ops, float* table, int* channels);
  void Fill(const Call& call, float* table) const;
  int Channels(int asked) const;
  void Elapse(const Call& call, const Choice& choice);
  void Run(const Call& call, const Choice& choice, void* parent, bool timed);

  const Plugin& plugin_;
  const Physics& physics_;
  const Options options_;
  void* tuner_ = nullptr;
  void* profiler_ = nullptr;
  uint64_t sequence_ = 0;
  uint64_t gpu_clock_ = 1000000;
  uint64_t start_ns_ = 0;  // of the last run
  uint64_t stop_ns_ = 0;
  void* captured_call_ = nullptr;
  double last_ = 0;
  bool misreport_ = false;
};

// The library's own logger: hands every line to whoever listens.
using Listener = void (*)(bool warning, const char* text);
void ListenToLog(Listener listener);

// Called around every question, on the thread that asks.
struct Questioner {
  void (*before)() = nullptr;
  void (*after)() = nullptr;
};
void WatchQuestions(const Questioner& questioner);

// The mask the plugin has set: one word for the process, as in the library.
int Mask();
// Somebody else sets it, as the RAS client does from 2.31 on: it is stored over the plugin's, and
// again after every init of a communicator.
void ChangeMask(int mask);

}  // namespace played
