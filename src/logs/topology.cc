#include "logs/topology.h"

#include "base/text.h"
#include "logs/cursor.h"

namespace diapason::logs {
namespace {

std::string_view Attribute(std::string_view line, std::string_view name) {
  Cursor cursor(line);
  std::string_view value;
  while (cursor.SkipTo(name)) {
    if (cursor.Skip("=\"") && cursor.Until("\"", &value)) return value.substr(0, 40);
  }
  return {};
}

int64_t NumberIn(std::string_view line, std::string_view name) {
  int64_t value = 0;
  Cursor cursor(Attribute(line, name));
  return cursor.Number(&value) ? value : 0;
}

}  // namespace

void Topologies::BeginFile(uint32_t file, bool graph) {
  open_ = files.size() < kMost;
  in_gpu_ = false;
  if (!open_) return;
  files.emplace_back();
  files.back().file = file;
  files.back().graph = graph;
}

void Topologies::EndGpu() {
  if (!in_gpu_) return;
  in_gpu_ = false;
  Topology& topology = files.back();
  if (gpu_links_ > 0) {
    ++topology.linked_gpus;
  } else if (topology.bare_gpu.line == 0) {
    topology.bare_gpu = gpu_place_;
  }
}

void Topologies::Line(const Spot& spot, std::string_view line) {
  if (!open_) return;
  Topology& topology = files.back();
  Cursor cursor(line);
  cursor.Blanks();
  const std::string_view tag = cursor.rest();
  if (topology.graph) {
    if (tag.starts_with("<graph ") && topology.graphs.size() < 32) {
      const auto text = [&](std::string_view name) { return std::string(Attribute(tag, name)); };
      topology.graphs.push_back(Format(
          "graph {}: pattern {}, {} channels, {} GB/s inside a host, {} between hosts, {}/{}",
          text(" id"), text(" pattern"), text("nchannels"), text("speedintra"), text("speedinter"),
          text("typeintra"), text("typeinter")));
    }
    return;
  }
  if (tag.starts_with("<cpu ")) ++topology.cpus;
  if (tag.starts_with("<gpu ")) {
    EndGpu();
    ++topology.gpus;
    in_gpu_ = true;
    gpu_links_ = 0;
    gpu_place_ = MakePlace(spot, tag);
    if (topology.architecture.empty()) {
      topology.architecture = std::string(Attribute(tag, "gcn"));
      if (topology.architecture.empty()) {
        topology.architecture = "sm " + std::string(Attribute(tag, " sm"));
      }
    }
    if (tag.find("/>") != std::string_view::npos) EndGpu();
  }
  if (tag.starts_with("</gpu")) EndGpu();
  if (tag.starts_with("<nvlink ") || tag.starts_with("<xgmi ")) {
    const int64_t count = NumberIn(tag, "count");
    topology.links += count;
    gpu_links_ += count;
    topology.link_name = tag[1] == 'n' ? "NVLink" : "XGMI";
  }
  if (tag.starts_with("<net ")) {
    ++topology.nics;
    if (Attribute(tag, "gdr") == "0") ++topology.nics_without_gdr;
  }
}

}  // namespace diapason::logs
