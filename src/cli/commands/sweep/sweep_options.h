#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/commands/ranks.h"
#include "launch/launcher.h"
#include "search/make_measurer.h"
#include "search/search.h"
#include "search/sweep.h"

namespace diapason::cli {

class CommandLine;

// The command line of `diapason sweep`.
struct SweepOptions {
  // Texts from the command line.
  RankOptions ranks;
  std::vector<std::string> collectives = {"all_reduce"};
  std::string sizes = "1K:8M:x2";
  std::string algorithms = "all";
  std::string protocols = "all";
  std::string channels = "default";
  std::string segments = "default";
  std::vector<std::string> environments;
  std::string type = "float";
  std::string reduce = "sum";
  std::string node_text = "1";
  std::string launcher_name = "local";
  std::string host_file;
  std::string launcher_arguments;
  std::string search_name = "exhaustive";
  double budget = 0;  // seconds; 0: none
  std::string sample_text;
  double tight = 0.02;
  bool in_place = false;
  std::string runner = "builtin";
  std::string folder;
  std::string replay;
  std::string store = "diapason.db";
  bool resume = false;
  bool retry_failed = false;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
  bool launch_each = false;

  // Values parsed by Read().
  Status Read();
  Status ReadPlan();
  Status ReadSearch();
  Status ReadLauncher();
  search::SweepPlan plan;
  search::SearchOptions search;
  launch::Launcher launcher;
  std::vector<int> nodes = {1};
  bool adaptive = false;
  double sample_share = 0;  // share of the samples of an exhaustive sweep; 0: not given
  std::string command_line;
  // What measures.
  search::MeasurerRequest Request() const;
  // Whether blocks of calls are ours to choose.
  bool Calibrates() const { return runner == "builtin" && replay.empty(); }
};

void AddSweepOptions(CommandLine* command, SweepOptions* options);

}  // namespace diapason::cli
