// What a group says about itself: who it is, what it has done, what was slow.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <set>
#include <thread>

#include "base/text.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

bool Near(double got, double expected) {
  return std::fabs(got - expected) <= 1e-6 * std::max(std::fabs(got), std::fabs(expected));
}

void Identity(Session& session) {
  Group& group = session.group();
  session.Expect(group.rank() >= 0 && group.rank() < group.size(), "rank out of range");
  if (session.options().rank >= 0) {
    session.Expect(group.rank() == session.options().rank, "another rank than it was given");
  }
  for (const char* name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    const char* value = std::getenv(name);
    if (session.settings().threads > 0 || value == nullptr) continue;
    session.Expect(group.size() == std::atoi(value),
                   Format("size {}, {}={}", group.size(), name, value));
  }
  const std::string& wanted = session.settings().backend;
  session.Expect(wanted == "auto" ? group.backend() != "sim" : group.backend() == wanted,
                 "backend " + group.backend());
  session.Expect(group.description().find(group.backend()) != std::string::npos,
                 "the description does not name the backend: " + group.description());
  session.Expect(group.simulated() == (group.backend() == "sim"), "simulated");
  session.Expect(group.nodes() >= 1 && group.nodes() <= group.size(),
                 Format("{} nodes", group.nodes()));
  session.Expect(group.local_rank() >= 0 && group.local_rank() < group.size(),
                 Format("local rank {}", group.local_rank()));
  // Ranks of one machine have local ranks of their own; unless Slurm says that one machine is
  // several.
  const char* nodes = std::getenv("SLURM_STEP_NUM_NODES");
  if (group.nodes() == 1 && (nodes == nullptr || std::atoi(nodes) == 1)) {
    const int32_t mine = group.local_rank();
    std::vector<int32_t> all(static_cast<size_t>(group.size()));
    session.Fine(group.AllGather(&mine, all.data(), 1, DataType::kI32), "local ranks");
    session.Expect(std::set<int32_t>(all.begin(), all.end()).size() == all.size(),
                   "two ranks of one machine with one local rank");
  }
}

void Names(Session& session) {
  for (const DataType type : kTypes) {
    const auto parsed = ParseDataType(DataTypeName(type));
    session.Expect(parsed.ok() && parsed.value() == type, DataTypeName(type));
  }
  for (const ReduceOp reduce : kReduces) {
    const auto parsed = ParseReduceOp(ReduceOpName(reduce));
    session.Expect(parsed.ok() && parsed.value() == reduce, ReduceOpName(reduce));
  }
  for (int i = 0; i < kOperationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    const auto parsed = ParseOperation(OperationName(operation));
    session.Expect(parsed.ok() && parsed.value() == operation, OperationName(operation));
  }
  session.Expect(std::string(OperationName(Operation::kAllReduce)) == "all_reduce", "all_reduce");
  session.Expect(SizeOf(DataType::kBf16) == 2 && SizeOf(DataType::kI64) == 8, "SizeOf");
  session.Refused(ParseDataType("f31").status(), "parsing 'f31'", "float");
  session.Refused(ParseReduceOp("").status(), "parsing ''");
  session.Refused(ParseOperation("all_redice").status(), "parsing 'all_redice'", "all_reduce");
}

void BackendList(Session& session) {
  if (session.rank() != 0) return;
  std::vector<std::string> names;
  for (const BackendInfo& info : Backends()) {
    names.push_back(info.name);
    session.Expect(info.usable == info.reason.empty(),
                   info.name + " is usable and has a reason, or neither: " + info.reason);
    if (info.name == session.group().backend()) {
      session.Expect(info.usable, info.name + " runs here and is not usable: " + info.reason);
    }
  }
  session.Expect(names == std::vector<std::string>{"nccl", "rccl", "gloo", "mpi", "sim"},
                 "backends: " + Join(names, ", "));
}

// How nccl-tests counts: the larger of the two buffers, and the share that one link carries.
void Bandwidths(Session& session) {
  const double n = session.size();
  const struct {
    Operation operation;
    bool parts;
    double factor;
  } table[] = {{Operation::kAllReduce, false, 2 * (n - 1) / n},
               {Operation::kBroadcast, false, 1},
               {Operation::kReduce, false, 1},
               {Operation::kAllGather, true, (n - 1) / n},
               {Operation::kReduceScatter, true, (n - 1) / n},
               {Operation::kAllToAll, true, (n - 1) / n}};
  Group& group = session.group();
  for (const auto& row : table) {
    const std::string name = OperationName(row.operation);
    group.ResetStatistics();
    Statistics statistics = group.statistics();
    session.Expect(statistics.operations == 0 && statistics.bytes == 0 && statistics.seconds == 0 &&
                       statistics.slowest.empty() && statistics.slow_calls == 0 &&
                       statistics.slowest_seconds == 0,
                   name + ": something is left after ResetStatistics");
    const size_t count = 5003;
    for (int i = 0; i < 3; ++i) {
      RunOne(session, group, {row.operation, DataType::kF32, ReduceOp::kSum, count});
    }
    statistics = group.statistics();
    const uint64_t bytes = 3 * 4 * count * (row.parts ? static_cast<uint64_t>(session.size()) : 1);
    session.Expect(statistics.operations == 3,
                   Format("{}: {} operations, expected 3", name, statistics.operations));
    session.Expect(statistics.bytes == bytes,
                   Format("{}: {} bytes, expected {}", name, statistics.bytes, bytes));
    session.Expect(statistics.seconds > 0 || n == 1, name + ": took no time");
    if (statistics.seconds > 0) {
      session.Expect(Near(statistics.algbw, static_cast<double>(bytes) / statistics.seconds),
                     Format("{}: algbw {:g} of {} bytes in {:g} s", name, statistics.algbw, bytes,
                            statistics.seconds));
      session.Expect(Near(statistics.busbw, statistics.algbw * row.factor),
                     Format("{}: busbw {:g}, algbw {:g}, expected factor {:g}", name,
                            statistics.busbw, statistics.algbw, row.factor));
    }
    session.Expect(statistics.slowest.find(name) != std::string::npos &&
                       statistics.slowest.find("number") != std::string::npos &&
                       statistics.slowest.find("f32") != std::string::npos,
                   "slowest: '" + statistics.slowest + "'");
    session.Expect(statistics.slowest_seconds <= statistics.seconds + 1e-9,
                   "the slowest took longer than all of them");
    session.Expect(statistics.simulated == group.simulated(), name + ": simulated");
    if (statistics.link_peak > 0) {
      session.Expect(Near(statistics.peak_share, statistics.busbw / statistics.link_peak),
                     name + ": share of the peak");
    } else {
      session.Expect(statistics.peak_share == 0, name + ": a share of no peak");
    }
  }
}

void AsyncIsCounted(Session& session) {
  Group& group = session.group();
  group.ResetStatistics();
  Exchange exchange(session, group, {Operation::kAllReduce, DataType::kF64, ReduceOp::kSum, 100});
  Work work = group.Start(exchange.call());
  exchange.Verify(work.Wait());
  const Statistics statistics = group.statistics();
  session.Expect(statistics.operations == 1 && statistics.bytes == 800,
                 Format("{} operations, {} bytes", statistics.operations, statistics.bytes));
  // Open MPI does not say when a call that was started has ended: it is counted and not timed.
  const bool timed = group.backend() != "mpi";
  session.Expect(statistics.untimed == (timed ? 0U : 1U), "untimed is wrong");
  session.Expect(statistics.slowest.empty() != timed, "slowest is wrong");
}

// How long the caller's clock saw one call take that the last rank makes this much later.
double LateCall(Session& session, std::chrono::milliseconds late_by) {
  Group& group = session.group();
  const bool late = session.rank() == session.size() - 1;
  session.Fine(group.Barrier(), "barrier");
  group.ResetStatistics();
  session.TakeLog();
  // At most one line a second: whatever was slow before has had its own.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  if (late && group.simulated()) session.Fine(group.SimulateCompute(0.5), "compute");
  if (late && !group.simulated()) std::this_thread::sleep_for(late_by);
  const double before = group.Now();
  RunOne(session, group, {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 1024});
  return late ? 0 : group.Now() - before;
}

// The last rank comes late; the others have a slow call, which is logged once with all it takes to
// find it in the program. On a busy machine the others may be late themselves, and have waited for
// nobody: then it is tried again with a later last rank, until everybody's own clock saw them wait.
void SlowCalls(Session& session) {
  if (session.size() == 1) return session.Note("slow calls: nobody to wait for");
  Group& group = session.group();
  const bool late = session.rank() == session.size() - 1;
  for (int delay_ms = 500; delay_ms <= 16000; delay_ms *= 2) {
    const double waited = LateCall(session, std::chrono::milliseconds(delay_ms));
    const Statistics statistics = group.statistics();
    const std::vector<std::string> log = session.TakeLog();
    int32_t all_waited = late || waited >= 0.3 ? 1 : 0;
    session.Fine(group.AllReduce(&all_waited, &all_waited, 1, DataType::kI32, ReduceOp::kMin),
                 "who waited");
    if (all_waited == 0) continue;
    if (late) return;
    session.Expect(statistics.slow_calls == 1,
                   Format("{} slow calls, expected 1", statistics.slow_calls));
    session.Expect(statistics.slowest_seconds >= 0.2,
                   Format("the slowest took {:g} s of {:g}", statistics.slowest_seconds, waited));
    const auto is_line = [](const std::string& line) {
      return line.find("all_reduce") != std::string::npos &&
             line.find("number") != std::string::npos && line.find("4KiB") != std::string::npos;
    };
    const auto lines = std::count_if(log.begin(), log.end(), is_line);
    session.Expect(
        lines == 1,
        Format("{} lines about the slow call among {}: ", static_cast<int>(lines), log.size()) +
            Join(log, " | "));
    return;
  }
  session.Expect(false, "nobody waited for a rank that came 16 s late");
}

void Clock(Session& session) {
  Group& group = session.group();
  const double before = group.Now();
  RunOne(session, group, {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 4097});
  const double after = group.Now();
  session.Expect(after >= before, Format("the clock went from {:g} to {:g}", before, after));
  const Status status = group.SimulateCompute(0.25);
  if (!group.simulated()) {
    session.Refused(status, "SimulateCompute on a real backend", "simulated");
    return;
  }
  session.Fine(status, "SimulateCompute");
  session.Expect(group.Now() >= after + 0.2499, "a quarter of a second passed and does not show");
  session.Refused(group.SimulateCompute(-1), "SimulateCompute(-1)");
  session.Refused(group.SimulateCompute(std::nan("")), "SimulateCompute(nan)");
}

}  // namespace

std::vector<Case> StatisticsCases() {
  return {{"identity", Identity, true},
          {"names", Names, true},
          {"backends", BackendList, true},
          {"bandwidths", Bandwidths, true},
          {"async is counted", AsyncIsCounted, true},
          {"slow calls", SlowCalls, true},
          {"clock", Clock, true}};
}

}  // namespace diapason::conformance
