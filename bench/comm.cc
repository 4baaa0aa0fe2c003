// What comm.h costs beyond calling Gloo or Open MPI directly. One rank of a job; `./dev bench comm`
// starts the jobs:
//
//   bench_comm gloo|mpi          paired and interleaved all_reduces, direct and through comm.h
//   bench_comm create            how long creating a Gloo group takes
//   bench_comm count WAY CALLS   only makes calls, for counting instructions (mpi, one rank)
#include "diapason/comm.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/stats.h"
#include "base/tick_clock.h"
#include "base/units.h"

namespace diapason {
namespace {

constexpr double kBar = 0.05;

struct Size {
  size_t bytes;
  int rounds;
  int calls;  // in one sample
};

using AllReduce = std::function<bool(float*, float*, size_t)>;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "bench_comm: %s\n", why.c_str());
  std::exit(1);
}

// Gloo as its own examples use it, on connections of its own.
AllReduce DirectGloo(int rank, int size) {
  const char* port = std::getenv("MASTER_PORT");
  const std::string folder =
      std::filesystem::temp_directory_path() / ("bench_comm_" + std::string(port ? port : "0"));
  std::filesystem::create_directories(folder);
  static gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  context->connectFullMesh(store, device);
  return [context](float* in, float* out, size_t count) {
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setInput(in, count);
    options.setOutput(out, count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
    return true;
  };
}

AllReduce DirectMpi() {
  return [](float* in, float* out, size_t count) {
    return MPI_Allreduce(in, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) ==
           MPI_SUCCESS;
  };
}

double Sample(const AllReduce& call, const Size& size, std::vector<float>* in,
              std::vector<float>* out) {
  const TickClock& clock = TickClock::Get();
  const uint64_t start = clock.Now();
  for (int i = 0; i < size.calls; ++i) {
    if (!call(in->data(), out->data(), in->size())) Die("a call failed");
  }
  return clock.Seconds(clock.Now() - start) * 1e6 / size.calls;
}

void Compare(Group* group, const AllReduce& direct, const Size& size) {
  const AllReduce ours = [group](float* in, float* out, size_t count) {
    return group->AllReduce(in, out, count, DataType::kF32).ok();
  };
  std::vector<float> in(size.bytes / sizeof(float), 1.0F);
  std::vector<float> out(in.size());
  std::vector<double> direct_times;
  std::vector<double> our_times;
  std::vector<double> ratios;
  for (int round = -size.rounds / 10; round < size.rounds; ++round) {
    // Whoever comes second finds warmer caches: they take turns.
    const bool first = (round & 1) == 0;
    const double a = Sample(first ? direct : ours, size, &in, &out);
    const double b = Sample(first ? ours : direct, size, &in, &out);
    if (round < 0) continue;  // warming up
    direct_times.push_back(first ? a : b);
    our_times.push_back(first ? b : a);
    ratios.push_back(our_times.back() / direct_times.back());
  }
  if (out[0] != static_cast<float>(group->size())) Die("a wrong sum");
  if (group->rank() != 0) return;
  const double direct_quartile = Quantile(direct_times, 0.25);
  const double our_quartile = Quantile(our_times, 0.25);
  const double added = our_quartile / direct_quartile - 1;
  const Interval interval = MedianInterval95(ratios);
  std::printf(
      "%-5s %7s  direct %9.3f us  comm.h %9.3f us  lower quartile %+5.2f %% (bar 5 %%: %s)  "
      "paired median %+5.2f %% [%+5.2f, %+5.2f]  %d pairs of %d calls\n",
      group->backend().c_str(), FormatBytes(size.bytes).c_str(), direct_quartile, our_quartile,
      added * 100, added <= kBar ? "met" : "NOT met", (Median(ratios) - 1) * 100,
      (interval.low - 1) * 100, (interval.high - 1) * 100, size.rounds, size.calls);
}

std::unique_ptr<Group> Create(const std::string& backend) {
  GroupOptions options;
  options.backend = backend;
  options.slow_call = std::chrono::milliseconds(-1);
  Result<std::unique_ptr<Group>> group = Group::Create(options);
  if (!group.ok()) Die(group.status().message());
  return std::move(group).value();
}

void CreationTime() {
  const TickClock& clock = TickClock::Get();
  std::vector<double> times;
  for (int i = 0; i < 12; ++i) {
    const uint64_t start = clock.Now();
    const std::unique_ptr<Group> group = Create("gloo");
    double mine = clock.Seconds(clock.Now() - start) * 1e3;
    double slowest = 0;
    if (!group->AllReduce(&mine, &slowest, 1, DataType::kF64, ReduceOp::kMax).ok()) Die("failed");
    if (i >= 2) times.push_back(slowest);
    if (i == 11 && group->rank() == 0) {
      const Interval interval = MedianInterval95(times);
      std::printf(
          "gloo  group of %d local ranks, slowest rank: median %.1f ms [%.1f, %.1f], worst of %zu "
          "%.1f ms (bar 1000 ms: %s)\n",
          group->size(), Median(times), interval.low, interval.high, times.size(),
          *std::max_element(times.begin(), times.end()),
          *std::max_element(times.begin(), times.end()) < 1000 ? "met" : "NOT met");
    }
  }
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "create") {
    CreationTime();
  } else if (what == "gloo" || what == "mpi") {
    const std::unique_ptr<Group> group = Create(what);
    const AllReduce direct = what == "mpi" ? DirectMpi() : DirectGloo(group->rank(), group->size());
    const bool mpi = what == "mpi";
    for (const Size& size : {Size{1024, 1000, mpi ? 200 : 10}, Size{1 << 20, 400, mpi ? 5 : 2}}) {
      Compare(group.get(), direct, size);
    }
  } else if (what == "count" && argc == 4) {
    const std::unique_ptr<Group> group = Create("mpi");
    const AllReduce direct = DirectMpi();
    std::vector<float> in(256, 1.0F);
    std::vector<float> out(256);
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
      const bool done =
          std::strcmp(argv[2], "direct") == 0
              ? direct(in.data(), out.data(), in.size())
              : group->AllReduce(in.data(), out.data(), in.size(), DataType::kF32).ok();
      if (!done) Die("a call failed");
    }
  } else {
    Die("usage: bench_comm gloo | mpi | create | count direct|comm CALLS");
  }
  return 0;
}

}  // namespace
}  // namespace diapason

int main(int argc, char** argv) { return diapason::Main(argc, argv); }
