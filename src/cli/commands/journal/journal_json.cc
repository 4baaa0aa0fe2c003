#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands/journal/journal.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "journal/learning.h"

namespace diapason::cli {
namespace {

using journal::JournalRecord;
using journal::RecordKind;
using nlohmann::ordered_json;

ordered_json LearningJson(const journal::JournalContents& contents) {
  ordered_json list = ordered_json::array();
  for (const journal::JournalContext& context : journal::LearningOf(contents)) {
    const Library library = contents.Find(context.communicator)->library;
    ordered_json arms = ordered_json::array();
    for (const journal::LearningArm& arm : context.arms) {
      arms.push_back(
          {{"algorithm", AlgorithmName(library, context.collective, arm.config.algorithm)},
           {"protocol", ProtocolName(library, arm.config.protocol)},
           {"channels", arm.config.channels},
           {"blocks", arm.blocks},
           {"samples", arm.samples},
           {"us", arm.seconds * 1e6},
           {"ratio", arm.ratio},
           {"skew", arm.skew},
           {"state", arm.state == journal::LearningArm::State::kLeft ? "left" : arm.StateText()}});
    }
    list.push_back({{"comm", context.communicator},
                    {"collective", CollectiveName(context.collective)},
                    {"band", context.band},
                    {"iterations", context.iterations},
                    {"epochs", context.epochs.size()},
                    {"arms", std::move(arms)}});
  }
  return list;
}

ordered_json ContentsJson(const std::string& file, const journal::JournalContents& contents) {
  ordered_json communicators = ordered_json::array();
  for (const journal::JournalComm& communicator : contents.communicators) {
    communicators.push_back(ordered_json::parse(CommunicatorLine(communicator)));
  }
  std::map<RecordKind, ordered_json> records;
  for (const RecordKind kind :
       {RecordKind::kDecision, RecordKind::kRan, RecordKind::kBypassed, RecordKind::kReward}) {
    records[kind] = ordered_json::array();
  }
  for (const JournalRecord& record : contents.records) {
    records[record.kind].push_back(
        ordered_json::parse(RecordLine(record, contents.Find(record.communicator)->library)));
  }
  return {{"file", file},
          {"host", contents.host},
          {"pid", contents.pid},
          {"dropped", contents.dropped},
          {"ended", contents.ended},
          {"bad_lines", contents.bad_lines},
          {"communicators", communicators},
          {"decisions", std::move(records[RecordKind::kDecision])},
          {"runs", std::move(records[RecordKind::kRan])},
          {"bypassed", std::move(records[RecordKind::kBypassed])},
          {"rewards", std::move(records[RecordKind::kReward])},
          {"steps", contents.steps},
          {"learning", LearningJson(contents)}};
}

}  // namespace

Result<int> ShowJournalsAsJson(const std::vector<std::string>& files) {
  ordered_json list = ordered_json::array();
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const journal::JournalContents read, ReadWithWarnings(file));
    list.push_back(ContentsJson(file, read));
  }
  PrintOut("{}\n", JsonText(list));
  return kExitFine;
}

}  // namespace diapason::cli
