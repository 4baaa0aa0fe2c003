#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands/watch/watch.h"
#include "cli/framework/findings.h"
#include "cli/framework/json_text.h"
#include "domain/schedule.h"

namespace diapason::cli {
namespace {

using Json = nlohmann::ordered_json;
using watch::NetRate;
using watch::ProcessView;
using watch::ThreadRate;

std::string Line(const Json& json) { return JsonText(json, -1); }

Json ThreadJson(const ThreadRate& thread) {
  Json json = {{"name", thread.name}, {"role", host::ThreadRoleName(thread.role)}};
  if (thread.tid != 0) json["tid"] = thread.tid;
  json["threads"] = thread.threads;
  json["cpu"] = thread.cpu();
  json["user"] = thread.user;
  json["system"] = thread.system;
  json["wait_share"] = thread.has_wait ? Json(thread.wait) : Json(nullptr);
  json["voluntary_per_s"] = thread.voluntary_per_s;
  json["involuntary_per_s"] = thread.involuntary_per_s;
  json["futex"] = {
      {"looks", thread.futex.looks}, {"told", thread.futex.told}, {"in_futex", thread.futex.futex}};
  if (thread.tid != 0) {
    json["state"] = std::string(1, thread.state);
    json["last_cpu"] = thread.last_cpu;
    json["allowed_cpus"] = thread.allowed_cpus;
    json["waits_in"] = thread.waits_in;
  }
  return json;
}

Json LearningJson(const watch::JournalTail& journal) {
  Json list = Json::array();
  for (const journal::JournalContext& context : journal.Learning()) {
    const Library library = journal.LibraryOf(context.communicator);
    Json arms = Json::array();
    for (const journal::LearningArm& arm : context.arms) {
      const bool left = arm.state == journal::LearningArm::State::kLeft;
      arms.push_back({{"configuration", ConfigText(library, context.collective, arm.config)},
                      {"state", left ? "left" : arm.StateText()},
                      {"blocks", arm.blocks},
                      {"samples", arm.samples},
                      {"seconds", arm.seconds},
                      {"to_default", arm.ratio}});
    }
    list.push_back({{"comm", context.communicator},
                    {"collective", CollectiveName(context.collective)},
                    {"up_to_bytes", BandLast(context.band)},
                    {"epoch", context.epochs.empty() ? 0 : context.epochs.back().epoch},
                    {"arms", std::move(arms)}});
  }
  return list;
}

Json JournalJson(const ProcessView& process) {
  const watch::JournalTail& journal = *process.journal;
  Json json = {{"file", journal.path()}};
  if (!process.journal_read) {
    json["problem"] = journal.problem();
    return json;
  }
  const auto& counts = journal.counts();
  json["operations"] = counts.operations();
  json["decisions"] = counts.decisions;
  json["runs"] = counts.runs;
  json["bypassed"] = counts.bypassed;
  json["rewards"] = counts.rewards;
  json["dropped"] = counts.dropped;
  json["not_understood"] = counts.unknown;
  json["restarts"] = counts.restarts;
  json["ended"] = counts.ended;
  json["operations_per_s"] = process.operations_per_s;
  json["runs_per_s"] = process.runs_per_s;
  json["rewards_per_s"] = process.rewards_per_s;
  Json contexts = Json::array();
  for (const watch::JournalTail::Context& context : journal.Contexts()) {
    contexts.push_back({{"comm", context.communicator},
                        {"collective", context.collective},
                        {"bytes", context.bytes},
                        {"calls", context.calls},
                        {"asked", context.asked},
                        {"ran", context.ran},
                        {"why", context.why},
                        {"seconds", context.seconds}});
  }
  json["contexts"] = std::move(contexts);
  json["learning"] = LearningJson(journal);
  return json;
}

Json ProcessJson(const ProcessView& process) {
  Json json = {{"pid", process.now.pid}, {"name", process.now.name}, {"ended", process.ended}};
  if (process.rank >= 0) json["rank"] = process.rank;
  if (!process.ended) {
    json["memory"] = {{"resident", process.now.resident},     {"virtual", process.now.virtual_size},
                      {"anonymous", process.now.anonymous},   {"shared", process.now.shared_memory},
                      {"locked", process.now.locked},         {"pinned", process.now.pinned},
                      {"swapped", process.now.swapped},       {"growth_per_min", process.growth},
                      {"growth_over_s", process.growth_since}};
    json["open_files"] = process.now.open_files;
    json["threads"] = process.now.threads.size();
    json["names_off"] = process.names_off;
  }
  if (!process.ended && !process.first) {
    json["seconds"] = process.rate.seconds;
    json["total"] = ThreadJson(process.rate.total);
    json["progress_cpu"] = process.rate.progress_cpu;
    json["progress_threads"] = process.rate.progress_threads;
    json["major_faults_per_s"] = process.rate.major_faults_per_s;
    for (const auto& [key, threads] :
         {std::pair{"named", &process.rate.named}, std::pair{"others", &process.rate.others},
          std::pair{"busy", &process.rate.busy}}) {
      json[key] = Json::array();
      for (const ThreadRate& thread : *threads) json[key].push_back(ThreadJson(thread));
    }
  }
  if (process.journal != nullptr) json["journal"] = JournalJson(process);
  return json;
}

Json NetJson(const NetRate& rate, const std::string& of) {
  Json trouble = Json::object();
  for (const auto& [name, value] : rate.trouble_per_s) trouble[name] = value;
  return {{"device", rate.name},
          {"of", of},
          {"rdma", rate.rdma},
          {"received_per_s", rate.received_per_s},
          {"sent_per_s", rate.sent_per_s},
          {"errors_per_s", rate.errors_per_s},
          {"waiting_per_s", rate.waiting_per_s},
          {"trouble_per_s", std::move(trouble)}};
}

Json Parsed(const std::vector<Finding>& findings) {
  return Json::parse(FindingsJson(findings), nullptr, false);
}

const char* AbsenceName(watch::RasAbsence absence) {
  switch (absence) {
    case watch::RasAbsence::kNone:
      return "no";
    case watch::RasAbsence::kLeft:
      return "left";
    case watch::RasAbsence::kUnresponsive:
      return "unresponsive";
    case watch::RasAbsence::kDead:
      return "dead";
  }
  return "no";
}

Json RankJson(const watch::RankView& rank, const std::vector<std::string>& functions) {
  Json counts = Json::object();
  for (size_t i = 0; i < functions.size() && i < rank.counts.size(); ++i) {
    if (rank.counts[i] != watch::kUnknownCount) counts[functions[i]] = rank.counts[i];
  }
  Json json = {{"rank", rank.rank}, {"host", rank.host}, {"pid", rank.pid}};
  json["local_pid"] = rank.local_pid == 0 ? Json(nullptr) : Json(rank.local_pid);
  json["state"] = watch::StateName(rank.state);
  json["missing"] = AbsenceName(rank.absence);
  json["missing_s"] = rank.absent_s;
  json["async_error"] = rank.async_error;
  json["advances"] = rank.advances;
  json["blamed"] = rank.blamed;
  json["counts"] = std::move(counts);
  return json;
}

Json VerdictJson(const watch::RasVerdict& verdict) {
  return {{"kind", watch::RasVerdictName(verdict.kind)},
          {"text", verdict.text},
          {"communicator", verdict.communicator},
          {"ranks", verdict.ranks},
          {"waiting", verdict.waiting},
          {"seconds", verdict.since_s}};
}

Json RasJson(const watch::RasView& ras) {
  Json json = {{"address", ras.address}, {"nccl_version", ras.nccl_version}};
  json["answered_by"] = ras.answered_by == 0 ? Json(nullptr) : Json(ras.answered_by);
  json["age_s"] = ras.age_s < 0 ? Json(nullptr) : Json(ras.age_s);
  json["problem"] = ras.problem;
  json["communicators"] = Json::array();
  for (const watch::CommunicatorView& communicator : ras.communicators) {
    Json ranks = Json::array();
    for (const watch::RankView& rank : communicator.ranks) {
      ranks.push_back(RankJson(rank, ras.functions));
    }
    json["communicators"].push_back(
        {{"hash", communicator.hash}, {"size", communicator.size}, {"ranks", std::move(ranks)}});
  }
  json["processes"] = Json::array();
  for (const watch::LocalRank& local : ras.processes) {
    json["processes"].push_back({{"pid", local.process.pid},
                                 {"rank", local.process.rank},
                                 {"state", watch::StateName(local.state)}});
  }
  json["verdict"] = VerdictJson(ras.verdict);
  return json;
}

}  // namespace

std::string WatchJson(const watch::WatchView& view, const watch::RasView& ras,
                      const std::vector<Finding>& findings) {
  Json json = {{"type", "look"}, {"seconds", view.seconds}};
  json["processes"] = Json::array();
  for (const ProcessView& process : view.processes) {
    json["processes"].push_back(ProcessJson(process));
  }
  json["network"] = Json::array();
  for (const watch::WatchView::Net& net : view.nets) {
    for (const NetRate& rate : net.rates) json["network"].push_back(NetJson(rate, net.of));
  }
  for (const NetRate& rate : view.rdma) json["network"].push_back(NetJson(rate, "rdma"));
  json["notes"] = view.notes;
  if (ras.used) json["ras"] = RasJson(ras);
  if (!findings.empty()) json["findings"] = Parsed(findings);
  return Line(json);
}

std::string WatchEndJson(const std::vector<pid_t>& ended, const watch::RasView& ras,
                         const std::vector<Finding>& findings) {
  Json json = {{"type", "end"}, {"ended", ended}, {"findings", Parsed(findings)}};
  if (ras.used) json["verdict"] = VerdictJson(ras.verdict);
  return Line(json);
}

std::string ProfileJson(pid_t pid, const watch::Profile& profile) {
  Json lines = Json::array();
  for (const watch::ProfileLine& line : profile.lines) {
    lines.push_back({{"tid", line.tid},
                     {"thread", line.thread},
                     {"role", host::ThreadRoleName(host::RoleOfThread(line.thread))},
                     {"share", line.share},
                     {"symbol", line.symbol},
                     {"object", line.object}});
  }
  return Line({{"type", "profile"},
               {"pid", pid},
               {"samples", profile.samples},
               {"lines", std::move(lines)}});
}

}  // namespace diapason::cli
