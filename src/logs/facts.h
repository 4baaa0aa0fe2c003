#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flight_recorder/record.h"
#include "logs/names.h"
#include "logs/perf.h"
#include "logs/place.h"
#include "logs/proxy_trace.h"
#include "logs/raised.h"
#include "logs/topology.h"
#include "logs/trouble.h"
#include "logs/watchdog.h"

namespace diapason::logs {

// The data parsed from the logs. Every table has a limit (kMost...): the logs of a thousand ranks
// fit, and hostile input needs no more memory than that.

inline constexpr size_t kMostFiles = 16384;
inline constexpr size_t kMostProcesses = 16384;
inline constexpr size_t kMostCommunicators = 2048;
inline constexpr size_t kMostMembers = 65536;
inline constexpr size_t kMostLinks = 65536;
inline constexpr size_t kMostVariables = 256;
inline constexpr size_t kMostValues = 32;  // of one variable
inline constexpr size_t kMostChoices = 1024;
inline constexpr size_t kMostCallKinds = 4096;

struct SourceFile {
  std::string name;
  std::string kind;  // "log", "flight recorder", "topology", "graph"
  uint64_t bytes = 0;
  uint64_t lines = 0;
};

// A process that wrote lines of NCCL or RCCL.
struct LoggedProcess {
  uint32_t host = kNoName;
  int64_t pid = 0;
  int64_t rank = -1;             // of its first communicator, or from its launcher's labels
  uint32_t library = kNoName;    // LogFacts::libraries
  uint32_t network = kNoName;    // "IB", "Socket"
  uint32_t member = UINT32_MAX;  // whose initialisation was seen last
  uint64_t gpu_bytes = 0;        // sum of logged allocations
  bool environment = false;      // it printed at least one variable
};

// One rank of one communicator.
struct CommRank {
  uint32_t communicator = 0;
  uint32_t process = 0;
  int32_t rank = -1;
  int32_t device = -1;
  uint64_t bus_id = 0;
  uint64_t pointer = 0;
  bool started = false;
  bool complete = false;
  bool used = false;  // a collective, or "Connected all rings": its initialisation must be complete
  bool ended = false;
  double init_seconds = -1;
  double bootstrap_seconds = -1;
  Spot start;
  // The last collective that it was seen to call.
  uint64_t operations = 0;
  uint64_t op_count = 0;
  uint32_t op_index = 0;  // among those with the same opCount
  uint32_t collective = kNoName;
  uint64_t elements = 0;
  Spot last;
};

struct LoggedComm {
  uint64_t id = 0;
  int64_t ranks = 0;
  int64_t other_ranks = 0;  // a different size printed by another rank; 0 if all agree
  int64_t nodes = 0;
  std::vector<uint32_t> members;
  SourceLine first;
  SourceLine disagreement;
  bool point_to_point = false;  // sends or receives: opCount then differs between ranks
  // "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, ..."
  int64_t coll_channels = -1;
  int64_t nvls_channels = -1;
  int64_t p2p_channels = -1;
  int64_t rings = 0;
  std::string first_ring;
  std::string first_tree;
};

// Connections from one rank to another by one transport.
struct Link {
  uint32_t communicator = 0;
  int32_t from = 0;
  int32_t to = 0;
  uint32_t way = 0;  // LogFacts::ways: "P2P/CUMEM", "NET/IB/3/GDRDMA"
  uint32_t sends = 0;
  uint32_t receives = 0;
  Spot first;
};

struct Variable {
  std::string name;
  Names values{kMostValues};
  std::vector<SourceLine> places;  // where each value was first seen
  std::vector<uint8_t> chosen;     // by process: 1 + the index of the value, 0 for none
};

// The library's choice for a collective.
struct LoggedChoice {
  uint32_t collective = kNoName;
  uint32_t algorithm = kNoName;
  uint32_t protocol = kNoName;
  int32_t channels = -1;
  uint64_t smallest = UINT64_MAX;
  uint64_t largest = 0;
  uint64_t times = 0;
  Spot first;
};

// Calls of one collective and size, over all processes.
struct CallKind {
  uint32_t collective = kNoName;
  uint64_t bytes = 0;  // as nccl-tests counts: the total of all ranks where each has its own part
  uint64_t times = 0;
};

// A collective that two ranks of one communicator called differently.
struct Disagreement {
  uint32_t communicator = 0;
  uint64_t op_count = 0;
  int32_t ranks[2] = {-1, -1};
  SourceLine places[2];
};

// A network interface or device that a process may use, and a line that says so.
struct Network {
  Names ib{1024};
  Names sockets{1024};
  size_t ib_devices = 0;  // the most named by one process
  uint64_t no_ib = 0;     // processes that found none
  SourceLine ib_place;
  SourceLine socket_place;
};

// Lines of a kind that are only counted, with the first of them.
struct LineCount {
  uint64_t count = 0;
  SourceLine first;
};

struct LogFacts {
  std::vector<SourceFile> files;
  uint64_t files_left_out = 0;
  uint64_t bytes = 0;
  uint64_t lines = 0;
  uint64_t library_lines = 0;
  uint64_t warnings = 0;  // lines of level WARN
  uint64_t damaged = 0;   // lines cut by other lines
  uint64_t long_lines = 0;
  // "mpirun", "srun", "torchrun": launchers whose labels were found
  std::vector<std::string> launchers;
  std::string first_time;  // as printed before the lines
  std::string last_time;

  Names hosts{4096};
  Names libraries{256};  // "NCCL 2.29.2+cuda13.1"
  std::vector<SourceLine> library_places;
  Names drivers{64};  // "CUDA driver 13.1", "ROCm 7.0.2"
  std::vector<SourceLine> driver_places;
  Names plugins{256};          // "net: NCCL RDMA Plugin v11 (v11)"
  Names missing_plugins{256};  // "NET libnccl-net.so"
  std::vector<SourceLine> missing_plugin_places;
  Names networks{64};
  Names architectures{64};  // "gfx950"
  std::vector<LoggedProcess> processes;
  uint64_t processes_left_out = 0;
  std::vector<CommRank> members;
  uint64_t members_left_out = 0;
  std::vector<LoggedComm> communicators;
  std::vector<Variable> variables;
  std::vector<Link> links;
  uint64_t links_left_out = 0;
  Names ways{1024};
  std::vector<LoggedChoice> choices;
  uint64_t choices_left_out = 0;
  std::vector<CallKind> call_kinds;
  uint64_t call_kinds_left_out = 0;  // calls
  Names words{512};                  // algorithms, protocols, collectives
  std::vector<Disagreement> disagreements;
  Network network;

  // Network channels of a host, with GPU Direct RDMA and without.
  struct GdrUse {
    uint64_t direct = 0;
    uint64_t staged = 0;
    SourceLine first_staged;
  };
  std::map<uint32_t, GdrUse> gdr_by_host;

  LineCount gdr_on;       // "GPU Direct RDMA Enabled for GPU"
  LineCount gdr_off;      // "... Disabled for GPU ... (distance ...)"
  LineCount gdr_missing;  // "NET/IB : GPU Direct RDMA Disabled for HCA", "GDRDMA not enabled"
  LineCount nvls_on;
  LineCount nvls_off;
  LineCount nvlink;       // a line that proves NVLink or XGMI between GPUs
  LineCount no_affinity;  // the process may not run on the CPUs near its GPU
  LineCount returned[8];  // "file.cc:123 -> N": functions that returned error N
  LineCount dmabuf_off;
  LineCount hdp;          // RCCL: connections with an HDP register to flush, in TRACE builds
  LineCount hdp_missing;  // and those without
  std::map<std::pair<uint32_t, int64_t>, std::vector<std::pair<int64_t, SourceLine>>> proxy_cores;

  LineCount retries;  // connections that the library tried again
  Troubles troubles;
  RaisedList raised;
  int64_t highest_rank = -1;  // that wrote or is named in a line
  uint64_t tracebacks = 0;
  SourceLine first_traceback;
  // What torchrun names as the first failure.
  struct {
    int64_t rank = -1;
    std::string host;
    int64_t exit_code = 0;
    SourceLine place;
  } root_failure;
  WatchdogReport watchdog;
  Perf perf;
  ProxyTraces proxy_traces;
  // Lines of NCCL_PROXY_DUMP_SIGNAL by file, which usually is one rank's. 4 MiB in total.
  struct DumpLines {
    SourceLine first;
    std::string text;
  };
  std::vector<DumpLines> proxy_dumps;
  size_t proxy_dump_bytes = 0;
  flight_recorder::FlightRecord flight;
  Topologies topologies;

  // "host:pid", "rank 3 (host:pid)".
  std::string ProcessText(uint32_t process) const;
  std::string Where(const Spot& spot) const;
  std::string Where(const SourceLine& place) const;  // "file:line: text"
};

}  // namespace diapason::logs
