#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "domain/vocabulary.h"
#include "journal/reader.h"
#include "plugin/client/plugin_client.h"
#include "policy/policy.h"

namespace diapason::cli {

// The shape of the communicator where neither the command line nor a table says another.
constexpr int64_t kAskNodes = 1;
constexpr int64_t kAskRanks = 8;

struct AskOptions {
  std::string plugin;
  std::string policy;
  std::string api;
  std::string library = "nccl";
  std::string library_version;
  std::string table;
  std::vector<std::string> collectives{"allreduce"};
  std::string sizes;
  int64_t nodes = 0;  // 0: that of the recorded table, else kAskNodes
  int64_t ranks = 0;  // 0: that of the recorded table, else kAskRanks
  int pipe_ops = 1;
  int reg_buff = 0;
  bool collnet = false;
  bool nvls = false;
  bool json = false;
  bool verbose = false;
};

Result<int> ParseApi(const std::string& text);
// Only nccl and rccl load tuner plugins.
Result<Library> ParsePlayed(const std::string& name);

// A question to the plugin and its answer.
struct AskedAnswer {
  Question question;
  journal::JournalRecord record;
  bool no_call = false;   // no such call exists: numPipeOps below 1, or nothing is on offer
  bool recorded = false;  // the plugin recorded the question in its journal
  Config takes;           // what the library will run, read from the plugin's outputs
  Config by_default;      // what it would have run without the plugin; only with a recorded table
  uint64_t table_bytes = 0;
};

// What the plugin answered to all questions.
struct AskResult {
  std::string plugin;
  int api = 0;
  Library library = Library::kNccl;
  Shape shape;
  std::string table;                             // file of the recorded tables; "" for none
  std::unique_ptr<policy::Policy> policy;        // for its rows; null: none could be loaded
  std::unique_ptr<journal::JournalComm> in_use;  // null: the plugin stepped aside
  std::vector<client::LogLine> log;
  std::vector<AskedAnswer> answers;
  bool refused = false;  // a policy was selected, here or in the environment, and is not used
};

// Loads the plugin and asks it. Sets variables of this process, which the plugin reads.
Result<AskResult> AskPlugin(const AskOptions& options);

std::string AskText(const AskResult& result);
std::string AskJson(const AskResult& result);

}  // namespace diapason::cli
