#include "base/text.h"
#include "env_plan/plan.h"

namespace diapason::env_plan {
namespace {

constexpr char kFreq[] = "NCCL_PROGRESS_APPENDOP_FREQ";
constexpr char kBatch[] = "NCCL_PROXY_APPEND_BATCH_SIZE";
constexpr char kShmCopy[] = "NCCL_SHM_USE_CUDA_MEMCPY";
constexpr char kP2pCopy[] = "NCCL_P2P_USE_CUDA_MEMCPY";
constexpr char kShared[] = "NCCL_NET_SHARED_BUFFERS";

constexpr double kMemoryShort = 0.9;

// Copies by the proxy put a thread between two GPUs.
void CopiesOff(PlanBuilder* builder, const std::string& reason) {
  builder->Set(kShmCopy, "0", reason);
  builder->Set(kP2pCopy, "0", reason);
}

bool MemoryShort(const host::Machine& machine) {
  for (const host::Gpu& gpu : machine.gpus) {
    if (gpu.memory_bytes > 0 && static_cast<double>(gpu.memory_used) >=
                                    kMemoryShort * static_cast<double>(gpu.memory_bytes)) {
      return true;
    }
  }
  return false;
}

void Latency(PlanBuilder* builder) {
  builder->Set(kFreq, "1",
               "the proxy's thread looks for new operations in every round, so that they start at "
               "once",
               "it takes the pool's lock more often: more CPU time, and a lower peak of bandwidth");
  builder->Set(kBatch, "4", "few operations are fetched at a time, the first need not wait",
               "the pool is visited more often");
  CopiesOff(builder, "a copy by the proxy would add its thread's delay to every transfer");
}

void Throughput(PlanBuilder* builder) {
  builder->Set(kFreq, "16",
               "the proxy's thread moves data for longer before it looks for new operations",
               "a new operation waits longer before it starts");
  builder->Set(kBatch, "32", "more operations are fetched at a time, with less overhead for each",
               "late ones of a batch start later");
  if (builder->Reads(kShared)) {
    builder->LeaveOut(kShared, "1",
                      "connections of send and receive share buffers already (automatic does it), "
                      "rings and trees never do: it would save nothing",
                      true);
  }
  if (MemoryShort(builder->machine())) {
    builder->Note("memory",
                  "a GPU's memory is nearly full: every connection has buffers of NCCL_BUFFSIZE "
                  "(4 MiB unless set) a channel; halving it saves memory and costs bandwidth of "
                  "large messages, so measure it first");
  }
}

void Cpu(PlanBuilder* builder) {
  builder->Set(kFreq, "16", "the proxy's thread visits the pool and its lock half as often",
               "a new operation waits longer before it starts");
  builder->Set(kBatch, "64", "one visit fetches up to four times as many operations",
               "late ones of a batch start later; the network may idle in between");
  CopiesOff(builder, "a copy by the proxy costs CPU time");
}

void Debug(PlanBuilder* builder) {
  builder->Set("NCCL_DEBUG", "INFO", "what the library found and chose",
               "a few hundred lines a rank; not for runs that are timed");
  builder->Set("NCCL_DEBUG_SUBSYS", "INIT,ENV,NET,GRAPH,TUNING,PROXY",
               "start, variables, network, rings and trees, choices, proxy; without COLL and CALL, "
               "which write a line for every call");
  builder->Set("NCCL_DEBUG_FILE", "nccl.%h.%p.log",
               "one file a process, named by host and process, in its working folder");
  builder->Set("NCCL_DEBUG_TIMESTAMP_LEVELS", "ALL", "when each line was written");
  builder->Set("NCCL_SET_THREAD_NAME", "1",
               "the library's threads get names that top -H, perf and diapason watch show");
  builder->Set("NCCL_PROXY_DUMP_SIGNAL", "10",
               "SIGUSR1 makes the proxy write down what it is doing",
               "it takes the place of what the program itself does on SIGUSR1");
  if (builder->plan()->request.library == Library::kRccl) {
    builder->Set("RCCL_ENABLE_PROXY_TRACE", "1", "the proxy keeps a history of its operations",
                 "memory and time for every operation");
  }
  std::vector<std::string>* steps = &builder->plan()->steps;
  steps->push_back("start the job with these variables");
  if (builder->Reads("NCCL_PROXY_DUMP_SIGNAL")) {
    steps->push_back(
        "when it hangs or is slow: diapason proxy dump PID; the dump goes to the job's standard "
        "output and stays in a buffer there unless the job was started with stdbuf -oL: where it "
        "was not, diapason proxy dump PID --fill");
  }
  steps->push_back("then: diapason logs nccl.*.log");
}

}  // namespace

void PlanForGoal(PlanBuilder* builder) {
  switch (builder->plan()->request.goal) {
    case PlanGoal::kLatency:
      Latency(builder);
      break;
    case PlanGoal::kThroughput:
      Throughput(builder);
      break;
    case PlanGoal::kCpu:
      Cpu(builder);
      break;
    case PlanGoal::kBalanced:
      for (const char* name : {kFreq, kBatch}) {
        if (!builder->Reads(name)) continue;
        builder->LeaveOut(name, builder->DefaultOf(name),
                          "the default is the balance of latency, bandwidth and CPU time", true);
      }
      break;
    case PlanGoal::kDebug:
      Debug(builder);
      return;
  }
  if (builder->plan()->settings.empty()) return;
  builder->Note("proxy",
                "the proxy moves data only over networks and for copies it was given: between GPUs "
                "of one host that reach each other's memory its settings change nothing");
  builder->Note("proof", "whether it helps, a measurement says: diapason env tune -- COMMAND");
}

}  // namespace diapason::env_plan
