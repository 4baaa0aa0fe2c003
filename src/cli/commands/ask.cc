#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/own_files.h"
#include "base/settings.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "domain/library_version.h"
#include "journal/reader.h"
#include "plugin/client/plugin_client.h"
#include "plugin/client/recorded_table.h"
#include "policy/source.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

struct AskOptions {
  std::string plugin;
  std::string policy;
  std::string api;
  std::string library = "nccl";
  std::string library_version;
  std::string table;
  std::vector<std::string> collectives{"allreduce"};
  std::string sizes;
  int64_t nodes = 0;  // 0: that of the recorded table, else kNodes
  int64_t ranks = 0;  // 0: that of the recorded table, else kRanks
  int pipe_ops = 1;
  int reg_buff = 0;
  bool collnet = false;
  bool nvls = false;
  bool json = false;
  bool verbose = false;
};

// A question to the plugin and its answer.
struct AskedAnswer {
  Question question;
  journal::JournalRecord record;
  bool recorded = false;  // the plugin recorded the question in its journal
  Config takes;           // what the library will run, read from the plugin's outputs
  Config by_default;      // what it would have run without the plugin; only with a recorded table
  uint64_t table_bytes = 0;
};

constexpr int64_t kNodes = 1;
constexpr int64_t kRanks = 8;
constexpr char kPluginFile[] = "libnccl-tuner-diapason.so";

Result<int> ParseApi(const std::string& text) {
  if (text.empty()) return 0;
  const std::string_view digits = text.starts_with('v') ? std::string_view(text).substr(1) : text;
  uint64_t api = 0;
  if (!ParseUnsigned(digits, &api) || api < 1 || api > 6) {
    return Invalid("'" + text + "' is not a tuner API version; the known versions are v1 to v6");
  }
  return static_cast<int>(api);
}

// Only these two libraries load tuner plugins.
Result<Library> ParsePlayed(const std::string& name) {
  const Result<Library> library = ParseLibrary(name);
  if (library.ok() && !AsksTuner(library.value())) {
    return Invalid("only nccl and rccl load a tuner plugin");
  }
  return library;
}

Config PairAt(const client::CostTableArgs& cost, int cell) {
  if (cell < 0) return {};
  return {cell / cost.protocols, cell % cost.protocols, 0};
}

// The journal records the plugin's intention, the outputs what the library will run: they must
// agree.
Status Compare(const AskedAnswer& answer) {
  if (!answer.recorded || !answer.record.applied) return {};
  const bool names_pair = answer.record.algorithm != kKeep && answer.record.protocol != kKeep;
  if (names_pair && (answer.takes.algorithm != answer.record.algorithm ||
                     answer.takes.protocol != answer.record.protocol)) {
    return Internal("the plugin's journal and its answer differ");
  }
  if (answer.takes.channels != answer.record.channels) {
    return Internal("the plugin's journal and its channel count differ");
  }
  return {};
}

std::string Why(const AskedAnswer& answer, const policy::Policy* policy) {
  if (!answer.recorded) return "the plugin stepped aside";
  const std::string sentence(ReasonSentence(answer.record.reason));
  if (answer.record.line == 0) return sentence;
  std::string row = Format("line %d", answer.record.line);
  if (policy != nullptr) {
    for (const policy::Rule& rule : policy->rules) {
      if (rule.line == answer.record.line) row += ": " + RuleText(policy->library, rule);
    }
  }
  if (answer.record.reason != Reason::kRow) row += " (" + sentence + ")";
  return answer.record.applied || answer.record.reason != Reason::kRow
             ? row
             : row + " (observed only, not applied)";
}

std::string ChoiceText(const AskedAnswer& answer, Library library) {
  if (!answer.recorded || !answer.record.applied) return "library default";
  Config config = answer.takes;
  if (answer.record.algorithm == kKeep && answer.record.protocol == kKeep) {
    config.algorithm = kKeep;
    config.protocol = kKeep;
  }
  return ConfigText(library, answer.question.collective, config);
}

class AskSession {
 public:
  explicit AskSession(const AskOptions& options) : options_(options) {}

  Status Run() {
    ASSIGN_OR_RETURN(const Library library, ParsePlayed(options_.library));
    library_ = library;
    RETURN_IF_ERROR(PrepareEnvironment());
    RETURN_IF_ERROR(ReadQuestions());
    LoadPolicyForPrinting();

    ASSIGN_OR_RETURN(const int api, ParseApi(options_.api));
    ASSIGN_OR_RETURN(std::unique_ptr<client::PluginClient> client,
                     client::PluginClient::Open(plugin_path_, api));
    client_ = std::move(client);
    const uint64_t comm_id = 0xd1a9a500;
    Status status = client_->Start(shape_, comm_id);
    for (size_t i = 0; status.ok() && i < answers_.size(); ++i) status = AskOne(&answers_[i]);
    if (!status.ok()) return status;
    if (status = client_->Stop(); !status.ok()) return status;
    return ReadReasons();
  }

  void Print() const {
    if (options_.json) {
      PrintJson();
    } else {
      PrintText();
    }
  }

  // Whether a policy was selected, here or in the environment, and the plugin does not use it.
  bool PolicyRefused() const {
    const Settings settings = Settings::Read(ProcessEnvironment());
    if (!settings.problems().empty()) return true;
    return policy::FindSource(settings).kind != policy::Source::Kind::kNone &&
           settings.Text(Setting::kMode) != "off" &&
           (contents_.communicators.empty() || contents_.communicators.front().policy.empty());
  }

 private:
  Status PrepareEnvironment() {
    RETURN_IF_ERROR(journal_.Create("ask"));
    plugin_path_ = options_.plugin.empty() ? FindBesideUs(kPluginFile) : options_.plugin;
    // Not beside this tool: let the loader search, and report its error.
    if (plugin_path_.empty()) plugin_path_ = kPluginFile;
    if (!options_.library_version.empty()) {
      ASSIGN_OR_RETURN(const int version, ParseLibraryVersion(options_.library_version));
      client::PluginClient::PretendVersion(version);
    }
    client::PluginClient::PretendLibrary(library_);
    setenv("DIAPASON_LIBRARY", std::string(LibraryName(library_)).c_str(), 1);
    if (!options_.policy.empty()) {
      setenv("DIAPASON_POLICY", options_.policy.c_str(), 1);
      // The policy of the command line takes precedence over the environment.
      unsetenv("DIAPASON_POLICY_INLINE");
      unsetenv("DIAPASON_OVERLAP");
      unsetenv("NCCL_WORKLOAD_OVERLAP");
    }
    setenv("DIAPASON_JOURNAL", journal_.path().c_str(), 1);
    setenv("DIAPASON_JOURNAL_RECORDS", "65536", 1);
    unsetenv("DIAPASON_JOURNAL_LIMIT");
    return {};
  }

  Status ReadQuestions() {
    if (!options_.table.empty()) {
      ASSIGN_OR_RETURN(std::vector<client::RecordedTable> tables,
                       client::ReadTables(options_.table, library_));
      tables_ = std::move(tables);
    }
    ChooseShape();
    for (const std::string& name : options_.collectives) {
      ASSIGN_OR_RETURN(const Collective collective, ParseCollective(library_, name));
      std::vector<uint64_t> sizes;
      if (!options_.sizes.empty() || tables_.empty()) {
        ASSIGN_OR_RETURN(std::vector<uint64_t> parsed,
                         ParseSizes(options_.sizes.empty() ? "1K:1G:x4" : options_.sizes));
        sizes = std::move(parsed);
      } else {
        for (const client::RecordedTable& table : tables_) {
          if (table.collective == collective) sizes.push_back(table.bytes);
        }
        if (sizes.empty()) return Invalid("'" + options_.table + "' has no table for " + name);
      }
      for (const uint64_t size : sizes) {
        AskedAnswer answer;
        answer.question = {collective, size, options_.pipe_ops, options_.reg_buff};
        answers_.push_back(answer);
      }
    }
    if (answers_.size() > 32768) return Invalid("more than 32768 questions at once");
    return {};
  }

  // The shape from the command line, else that of the job that recorded the tables.
  void ChooseShape() {
    const Shape recorded = tables_.empty() ? Shape{} : tables_.front().shape;
    shape_.nodes = options_.nodes > 0 ? options_.nodes : recorded.nodes;
    shape_.ranks = options_.ranks > 0 ? options_.ranks : recorded.ranks;
    if (shape_.nodes == 0) shape_.nodes = kNodes;
    if (shape_.ranks == 0) shape_.ranks = kRanks;
    for (const client::RecordedTable& table : tables_) {
      if (table.shape.nodes == 0 ||
          (table.shape.nodes == shape_.nodes && table.shape.ranks == shape_.ranks)) {
        continue;
      }
      Warn(Format("'%s' has tables for %s and %s; the questions are for %s and %s",
                  options_.table.c_str(),
                  Count(static_cast<size_t>(table.shape.nodes), "node").c_str(),
                  Count(static_cast<size_t>(table.shape.ranks), "rank").c_str(),
                  Count(static_cast<size_t>(shape_.nodes), "node").c_str(),
                  Count(static_cast<size_t>(shape_.ranks), "rank").c_str()));
      return;
    }
  }

  void LoadPolicyForPrinting() {
    const Settings settings = Settings::Read(ProcessEnvironment());
    policy::ParseOptions parse;
    parse.library = library_;
    Result<policy::Policy> loaded = policy::LoadPolicy(policy::FindSource(settings), parse);
    if (loaded.ok()) policy_ = std::make_unique<policy::Policy>(std::move(loaded).value());
  }

  Status AskOne(AskedAnswer* answer) {
    const client::RecordedTable* recorded =
        client::Nearest(tables_, answer->question.collective, answer->question.bytes);
    client::CostTableArgs cost =
        recorded != nullptr ? recorded->cost : client::EveryPair(answer->question.collective);
    if (recorded != nullptr) {
      answer->by_default = PairAt(cost, cost.Cheapest());
      answer->table_bytes = recorded->bytes;
    }
    Config pair;
    ASSIGN_OR_RETURN(
        const int channels,
        client_->Ask(answer->question, {options_.collnet, options_.nvls}, &cost, &pair));
    answer->takes = client_->api() <= 2 ? pair : PairAt(cost, cost.Cheapest());
    answer->takes.channels = channels;
    return {};
  }

  Status ReadReasons() {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(journal_.path(), size_t{1} << 30));
    // An inactive plugin opens no journal.
    if (!text.empty()) {
      ASSIGN_OR_RETURN(journal::JournalContents contents,
                       journal::ParseJournal(text, "the journal"));
      contents_ = std::move(contents);
      if (contents_.records.size() == answers_.size()) {
        for (size_t i = 0; i < answers_.size(); ++i) {
          answers_[i].record = contents_.records[i];
          answers_[i].recorded = true;
        }
      }
    }
    for (const AskedAnswer& answer : answers_) {
      RETURN_IF_ERROR(Compare(answer));
    }
    return {};
  }

  // The plugin's log, without its messages about the journal that this command set up.
  std::vector<client::LogLine> Log() const {
    std::vector<client::LogLine> lines;
    for (const client::LogLine& line : client::PluginClient::Log()) {
      if (line.text.find(journal_.path()) == std::string::npos) lines.push_back(line);
    }
    return lines;
  }

  void PrintLog() const {
    for (const client::LogLine& line : Log()) {
      if (line.warning || options_.verbose) {
        std::fprintf(stderr, "plugin %s: %s\n", line.warning ? "warns" : "says", line.text.c_str());
      }
    }
  }

  std::string PolicyLine() const {
    if (contents_.communicators.empty()) return "(the plugin stepped aside)";
    const journal::JournalComm& communicator = contents_.communicators.front();
    if (communicator.policy.empty()) return "(none in use)";
    return Format("%s, %s, %s", communicator.policy.c_str(),
                  Count(communicator.rows, "matching row").c_str(), communicator.digest.c_str());
  }

  void PrintText() const {
    PrintLog();
    std::printf("plugin  %s (tuner API v%d, as %s)\n", plugin_path_.c_str(), client_->api(),
                std::string(LibraryTitle(library_)).c_str());
    std::printf("policy  %s\n", PolicyLine().c_str());
    std::printf("shape   %s, %s\n", Count(static_cast<size_t>(shape_.nodes), "node").c_str(),
                Count(static_cast<size_t>(shape_.ranks), "rank").c_str());
    if (client_->api() >= 3) {
      std::printf("table   %s\n",
                  tables_.empty()
                      ? "none recorded: every pair that the collective can run is offered"
                      : options_.table.c_str());
    }
    std::printf("\n");
    std::vector<std::string> titles{"collective", "size", "choice", "why"};
    const bool with_default = !tables_.empty() && client_->api() >= 3;
    if (with_default) titles.insert(titles.begin() + 2, {"library alone", "table of"});
    report::Table table(titles);
    table.SetAlign({report::Table::Align::kLeft, report::Table::Align::kRight});
    for (const AskedAnswer& answer : answers_) {
      std::vector<std::string> row{std::string(CollectiveName(answer.question.collective)),
                                   FormatBytes(answer.question.bytes), ChoiceText(answer, library_),
                                   Why(answer, policy_.get())};
      if (with_default) {
        row.insert(row.begin() + 2,
                   {ConfigText(library_, answer.question.collective, answer.by_default),
                    FormatBytes(answer.table_bytes)});
      }
      table.Add(row);
    }
    std::printf("%s", table.Text().c_str());
  }

  void PrintJson() const {
    ordered_json list = ordered_json::array();
    for (const AskedAnswer& answer : answers_) {
      const Collective collective = answer.question.collective;
      ordered_json row{{"collective", CollectiveName(collective)},
                       {"bytes", answer.question.bytes},
                       {"applied", answer.recorded && answer.record.applied},
                       {"choice", ChoiceText(answer, library_)},
                       {"algorithm", AlgorithmName(library_, collective, answer.takes.algorithm)},
                       {"protocol", ProtocolName(library_, answer.takes.protocol)},
                       {"channels", answer.takes.channels},
                       {"reason", answer.recorded ? ReasonName(answer.record.reason) : "off"},
                       {"line", answer.record.line},
                       {"why", Why(answer, policy_.get())}};
      if (!tables_.empty()) {
        row["default_algorithm"] = AlgorithmName(library_, collective, answer.by_default.algorithm);
        row["default_protocol"] = ProtocolName(library_, answer.by_default.protocol);
        row["table_bytes"] = answer.table_bytes;
      }
      list.push_back(row);
    }
    ordered_json log = ordered_json::array();
    for (const client::LogLine& line : Log()) {
      log.push_back({{"level", line.warning ? "warning" : "info"}, {"text", line.text}});
    }
    const journal::JournalComm* communicator =
        contents_.communicators.empty() ? nullptr : &contents_.communicators.front();
    const ordered_json whole{{"plugin", plugin_path_},
                             {"api", client_->api()},
                             {"library", LibraryName(library_)},
                             {"nodes", shape_.nodes},
                             {"ranks", shape_.ranks},
                             {"policy", communicator != nullptr ? communicator->policy : ""},
                             {"digest", communicator != nullptr ? communicator->digest : ""},
                             {"rows", communicator != nullptr ? communicator->rows : 0},
                             {"table", options_.table},
                             {"log", log},
                             {"answers", list}};
    std::printf("%s\n", JsonText(whole).c_str());
  }

  const AskOptions& options_;
  TemporaryFile journal_;
  Library library_ = Library::kNccl;
  std::string plugin_path_;
  std::vector<client::RecordedTable> tables_;
  Shape shape_;
  std::vector<AskedAnswer> answers_;
  std::unique_ptr<policy::Policy> policy_;
  std::unique_ptr<client::PluginClient> client_;
  journal::JournalContents contents_;
};

Result<int> RunAsk(const AskOptions& options) {
  AskSession session(options);
  RETURN_IF_ERROR(session.Run());
  session.Print();
  return session.PolicyRefused() ? kExitFailed : kExitFine;
}

}  // namespace

void AddAsk(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<AskOptions>();
  CommandLine* ask =
      parent->AddCommand("ask", "Show what the plugin would choose for given calls, and why");
  ask->Describe(
      "Loads the real plugin through the interface that NCCL uses, asks it about each call, and "
      "prints the answers with the reasons from the plugin's journal. Neither a GPU nor NCCL is "
      "needed.");
  ask->AddOption("--policy", options->policy, "Policy file to apply")
      ->TypeName("FILE")
      ->Default("the policy that the environment selects");
  ask->AddOption("--nodes", options->nodes, "Number of nodes of the communicator")
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}))
      ->Default(Format("%d, or that of --table", static_cast<int>(kNodes)));
  ask->AddOption("--ranks", options->ranks, "Number of ranks of the communicator")
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}))
      ->Default(Format("%d, or that of --table", static_cast<int>(kRanks)));
  ask->AddOption("--collective", options->collectives,
                 "Collectives to ask about: " + Join(TunedCollectives(), ", ") +
                     "; separate several by commas")
      ->Delimiter(',')
      ->TypeName("NAME")
      ->Words(TunedCollectives())
      ->Check(ReadBy([](const std::string& name) { return ParseCollective(Library::kNccl, name); }))
      ->ShowDefault();
  ask->AddOption("--sizes", options->sizes, std::string("Message sizes: ") + kSizesText)
      ->TypeName("SIZES")
      ->Check(ReadBy(ParseSizes))
      ->Default("1K:1G:x4, or the sizes of --table");
  ask->AddOption(
         "--table", options->table,
         "Recorded cost table: a journal with tables, or the output of `journal show --tables`")
      ->TypeName("FILE");
  ask->Heading("Library that loads the plugin");
  ask->AddOption("--library", options->library, "Library to act as: nccl or rccl")
      ->TypeName("NAME")
      ->Words(NcclOrRccl())
      ->Check(ReadBy(ParsePlayed))
      ->ShowDefault();
  ask->AddOption("--library-version", options->library_version,
                 "Version of the library to act as, such as 2.28.9")
      ->TypeName("VERSION")
      ->Check(ReadBy(ParseLibraryVersion))
      ->Default("unknown");
  ask->AddOption("--api", options->api, "Tuner API version to use, v1 to v6")
      ->TypeName("VERSION")
      ->Words({"v1", "v2", "v3", "v4", "v5", "v6"})
      ->Check(ReadBy(ParseApi))
      ->Default("the newest version of the plugin");
  ask->AddOption("--pipe-ops", options->pipe_ops, "Value of numPipeOps in each call")
      ->ShowDefault();
  ask->AddOption("--reg-buff", options->reg_buff, "Value of regBuff in each call")
      ->TypeName("0|1")
      ->Check(Range(0, 1))
      ->ShowDefault();
  ask->AddFlag("--collnet", options->collnet,
               "Report CollNet as available, under tuner API v1 and v2");
  ask->AddFlag("--nvls", options->nvls, "Report NVLS as available, under tuner API v1 and v2");
  ask->AddOption("--plugin", options->plugin, "Plugin library to load")
      ->TypeName("FILE")
      ->Default("the plugin beside this tool");
  ask->Heading("Output");
  ask->AddFlag("-v,--verbose", options->verbose,
               "Print the plugin's whole log, not only its warnings");
  ask->AddJson(options->json);
  ask->Example("diapason ask --policy my.conf --sizes 64K:16M:x4",
               "Show the choices of a policy for allreduce on one node with 8 ranks");
  ask->Example("diapason ask --nodes 2 --ranks 16 --collective allgather",
               "Show the choices of the environment's policy for allgather");
  ask->SeeAlso({"policy-show", "journal-show"});
  ask->Callback([options, run] { *run = [options] { return RunAsk(*options); }; });
}

}  // namespace diapason::cli
