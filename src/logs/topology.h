#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "logs/place.h"

namespace diapason::logs {

// A topology or graph file (NCCL_TOPO_DUMP_FILE, NCCL_GRAPH_DUMP_FILE), summarised.
struct Topology {
  uint32_t file = 0;
  bool graph = false;
  int64_t cpus = 0;
  int64_t gpus = 0;
  int64_t nics = 0;
  int64_t nics_without_gdr = 0;
  int64_t links = 0;                // NVLink or XGMI links in total
  int64_t linked_gpus = 0;          // GPUs that have any
  std::string link_name;            // "nvlink", "xgmi"
  std::string architecture;         // "gfx950", "sm 90"
  SourceLine bare_gpu;              // a GPU without links, if others have some
  std::vector<std::string> graphs;  // "graph 0: pattern 4, 16 channels, 40/40 GB/s, LOC/PIX"
};

class Topologies {
 public:
  static constexpr size_t kMost = 1024;
  std::vector<Topology> files;
  void BeginFile(uint32_t file, bool graph);
  void Line(const Spot& spot, std::string_view line);

 private:
  void EndGpu();
  bool open_ = false;
  bool in_gpu_ = false;
  int64_t gpu_links_ = 0;
  SourceLine gpu_place_;
};

}  // namespace diapason::logs
