#include "cli/commands/ask/ask_plugin.h"

#include <stdlib.h>

#include <algorithm>

#include "base/file.h"
#include "base/own_files.h"
#include "base/settings.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/framework/command.h"
#include "domain/library_version.h"
#include "plugin/client/recorded_table.h"
#include "policy/source.h"

namespace diapason::cli {
namespace {

constexpr char kPluginFile[] = "libnccl-tuner-diapason.so";

Config PairAt(const client::CostTableArgs& cost, int cell) {
  if (cell < 0) return {};
  return {cell / cost.protocols, cell % cost.protocols, 0};
}

// The API with which a library loads the plugin: the newest that both have. 0: the version is
// unknown, and the plugin's newest is as good as any.
int LibrarysApi(Library library, int version) {
  struct First {
    int version;
    int api;
  };
  constexpr First kFirsts[] = {{23206, 7}, {23000, 6}, {22800, 5}, {22400, 4},
                               {22200, 3}, {22100, 2}, {1, 1}};
  constexpr int kNewestOfRccl = 6;
  for (const First& first : kFirsts) {
    if (version < first.version) continue;
    return library == Library::kRccl ? std::min(first.api, kNewestOfRccl) : first.api;
  }
  return library == Library::kRccl ? kNewestOfRccl : 0;
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

class AskSession {
 public:
  explicit AskSession(const AskOptions& options) : options_(options) {}

  Result<AskResult> Run() {
    ASSIGN_OR_RETURN(library_, ParsePlayed(options_.library));
    RETURN_IF_ERROR(PrepareEnvironment());
    RETURN_IF_ERROR(ReadQuestions());

    ASSIGN_OR_RETURN(int api, ParseApi(options_.api));
    if (api == 0) api = LibrarysApi(library_, version_);
    ASSIGN_OR_RETURN(client_, client::PluginClient::Open(plugin_path_, api));
    const uint64_t comm_id = 0xd1a9a500;
    Status status = client_->Start(shape_, comm_id);
    for (size_t i = 0; status.ok() && i < answers_.size(); ++i) status = AskOne(&answers_[i]);
    if (!status.ok()) return status;
    if (status = client_->Stop(); !status.ok()) return status;
    RETURN_IF_ERROR(ReadReasons());
    return Collect();
  }

 private:
  Status PrepareEnvironment() {
    RETURN_IF_ERROR(journal_.Create("ask"));
    plugin_path_ = options_.plugin.empty() ? FindBesideUs(kPluginFile) : options_.plugin;
    // Not beside this tool: let the loader search, and report its error.
    if (plugin_path_.empty()) plugin_path_ = kPluginFile;
    if (!options_.library_version.empty()) {
      ASSIGN_OR_RETURN(version_, ParseLibraryVersion(options_.library_version));
      client::PluginClient::PretendVersion(version_);
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
      ASSIGN_OR_RETURN(tables_, client::ReadTables(options_.table, library_));
    }
    ChooseShape();
    for (const std::string& name : options_.collectives) {
      ASSIGN_OR_RETURN(const Collective collective, ParseCollective(library_, name));
      std::vector<uint64_t> sizes;
      if (!options_.sizes.empty() || tables_.empty()) {
        ASSIGN_OR_RETURN(sizes, ParseSizes(options_.sizes.empty() ? "1K:1G:x4" : options_.sizes));
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
    if (shape_.nodes == 0) shape_.nodes = kAskNodes;
    if (shape_.ranks == 0) shape_.ranks = kAskRanks;
    for (const client::RecordedTable& table : tables_) {
      if (table.shape.nodes == 0 ||
          (table.shape.nodes == shape_.nodes && table.shape.ranks == shape_.ranks)) {
        continue;
      }
      Warn(Format("'{}' has tables for {} and {}; the questions are for {} and {}", options_.table,
                  Count(static_cast<size_t>(table.shape.nodes), "node"),
                  Count(static_cast<size_t>(table.shape.ranks), "rank"),
                  Count(static_cast<size_t>(shape_.nodes), "node"),
                  Count(static_cast<size_t>(shape_.ranks), "rank")));
      return;
    }
  }

  Status AskOne(AskedAnswer* answer) {
    const client::RecordedTable* recorded =
        client::Nearest(tables_, answer->question.collective, answer->question.bytes);
    client::CostTableArgs cost =
        recorded != nullptr ? recorded->cost : client::EveryPair(answer->question.collective);
    if (recorded != nullptr) {
      answer->by_default = PairAt(cost, cost.Cheapest(client_->last_of_equals()));
      answer->table_bytes = recorded->bytes;
    }
    answer->no_call = answer->question.pipe_ops < 1 ||
                      (client_->api() >= 3 && cost.Cheapest(client_->last_of_equals()) < 0);
    Config pair;
    ASSIGN_OR_RETURN(
        const int channels,
        client_->Ask(answer->question, {options_.collnet, options_.nvls}, &cost, &pair));
    answer->takes =
        client_->api() <= 2 ? pair : PairAt(cost, cost.Cheapest(client_->last_of_equals()));
    answer->takes.channels = channels;
    return {};
  }

  Status ReadReasons() {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(journal_.path(), size_t{1} << 30));
    // An inactive plugin opens no journal.
    if (!text.empty()) {
      ASSIGN_OR_RETURN(contents_, journal::ParseJournal(text, "the journal"));
      const auto calls = std::count_if(answers_.begin(), answers_.end(),
                                       [](const AskedAnswer& one) { return !one.no_call; });
      if (contents_.records.size() == static_cast<size_t>(calls)) {
        auto record = contents_.records.begin();
        for (AskedAnswer& answer : answers_) {
          if (answer.no_call) continue;
          answer.record = *record++;
          answer.recorded = true;
        }
      }
    }
    for (const AskedAnswer& answer : answers_) {
      RETURN_IF_ERROR(Compare(answer));
    }
    return {};
  }

  AskResult Collect() {
    AskResult result;
    result.plugin = plugin_path_;
    result.api = client_->api();
    result.library = library_;
    result.shape = shape_;
    result.table = options_.table;
    result.log = Log();
    result.answers = std::move(answers_);
    const Settings settings = Settings::Read(ProcessEnvironment());
    const policy::Source source = policy::FindSource(settings);
    policy::ParseOptions parse;
    parse.library = library_;
    Result<policy::Policy> loaded = policy::LoadPolicy(source, parse);
    if (loaded.ok()) result.policy = std::make_unique<policy::Policy>(std::move(loaded).value());
    if (!contents_.communicators.empty()) {
      result.in_use = std::make_unique<journal::JournalComm>(contents_.communicators.front());
    }
    result.refused =
        !settings.problems().empty() ||
        (source.kind != policy::Source::Kind::kNone && settings.Text(Setting::kMode) != "off" &&
         (result.in_use == nullptr || result.in_use->policy.empty()));
    return result;
  }

  // The plugin's log, without its messages about the journal that this command set up.
  std::vector<client::LogLine> Log() const {
    std::vector<client::LogLine> lines;
    for (const client::LogLine& line : client::PluginClient::Log()) {
      if (line.text.find(journal_.path()) == std::string::npos) lines.push_back(line);
    }
    return lines;
  }

  const AskOptions& options_;
  TemporaryFile journal_;
  Library library_ = Library::kNccl;
  int version_ = 0;  // 0: unknown
  std::string plugin_path_;
  std::vector<client::RecordedTable> tables_;
  Shape shape_;
  std::vector<AskedAnswer> answers_;
  std::unique_ptr<client::PluginClient> client_;
  journal::JournalContents contents_;
};

}  // namespace

Result<int> ParseApi(const std::string& text) {
  if (text.empty()) return 0;
  const std::string_view digits = text.starts_with('v') ? std::string_view(text).substr(1) : text;
  uint64_t api = 0;
  if (!ParseUnsigned(digits, &api) || api < 1 || api > 7) {
    return Invalid("'" + text + "' is not a tuner API version; the known versions are v1 to v7");
  }
  return static_cast<int>(api);
}

Result<Library> ParsePlayed(const std::string& name) {
  const Result<Library> library = ParseLibrary(name);
  if (library.ok() && !AsksTuner(library.value())) {
    return Invalid("only nccl and rccl load a tuner plugin");
  }
  return library;
}

Result<AskResult> AskPlugin(const AskOptions& options) { return AskSession(options).Run(); }

}  // namespace diapason::cli
