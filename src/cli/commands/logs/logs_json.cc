#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands/logs/logs_report.h"
#include "cli/framework/findings.h"
#include "cli/framework/json_text.h"
#include "flight_recorder/diagnose.h"
#include "logs/diagnose.h"

namespace diapason::cli {
namespace {

using logs::CommRank;
using logs::HostLink;
using logs::kNoName;
using logs::LogFacts;
using logs::LoggedChoice;
using logs::LoggedComm;
using logs::LoggedProcess;
using logs::Names;
using logs::PerfTest;
using logs::Spot;
using logs::Topology;
using logs::Variable;
using Json = nlohmann::ordered_json;

Json List(const Names& names) {
  Json list = Json::array();
  for (uint32_t i = 0; i < names.size(); ++i) list.push_back(names[i]);
  return list;
}

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Json Read(const LogFacts& facts) {
  Json files = Json::array();
  for (const auto& file : facts.files) {
    files.push_back(
        {{"name", file.name}, {"kind", file.kind}, {"bytes", file.bytes}, {"lines", file.lines}});
  }
  return {{"files", files},
          {"files_left_out", facts.files_left_out},
          {"bytes", facts.bytes},
          {"lines", facts.lines},
          {"library_lines", facts.library_lines},
          {"warnings", facts.warnings},
          {"damaged_lines", facts.damaged},
          {"long_lines", facts.long_lines},
          {"launchers", facts.launchers},
          {"first_time", facts.first_time},
          {"last_time", facts.last_time}};
}

Json Libraries(const LogFacts& facts) {
  // Names that were interrupted by other lines are not hosts.
  std::set<std::string> hosts;
  for (const LoggedProcess& process : facts.processes) hosts.insert(facts.hosts[process.host]);
  return {{"libraries", List(facts.libraries)},
          {"drivers", List(facts.drivers)},
          {"architectures", List(facts.architectures)},
          {"hdp_registers", facts.hdp.count},
          {"hdp_registers_missing", facts.hdp_missing.count},
          {"plugins", List(facts.plugins)},
          {"plugins_not_found", List(facts.missing_plugins)},
          {"networks", List(facts.networks)},
          {"hosts", hosts}};
}

Json Ranks(const LogFacts& facts) {
  Json list = Json::array();
  for (const LoggedComm& communicator : facts.communicators) {
    if (communicator.members.empty()) continue;
    Json members = Json::array();
    for (const uint32_t index : communicator.members) {
      const CommRank& member = facts.members[index];
      const LoggedProcess& process = facts.processes[member.process];
      Json entry = {{"rank", member.rank},
                    {"host", facts.hosts[process.host]},
                    {"pid", process.pid},
                    {"device", member.device},
                    {"bus_id", Hex(member.bus_id)},
                    {"complete", member.complete || member.used || member.ended}};
      if (process.library != kNoName) entry["library"] = facts.libraries[process.library];
      if (member.init_seconds >= 0) entry["init_seconds"] = member.init_seconds;
      if (member.operations > 0) {
        entry["operations"] = member.operations;
        entry["last_op_count"] = member.op_count;
        entry["last_collective"] = facts.words[member.collective];
        entry["last_elements"] = member.elements;
        entry["last_line"] = facts.Where(member.last);
      }
      members.push_back(std::move(entry));
    }
    list.push_back({{"id", Hex(communicator.id)},
                    {"ranks", communicator.ranks},
                    {"nodes", communicator.nodes},
                    {"channels", communicator.coll_channels},
                    {"nvls_channels", communicator.nvls_channels},
                    {"p2p_channels", communicator.p2p_channels},
                    {"rings", communicator.rings},
                    {"first_ring", communicator.first_ring},
                    {"first_tree", communicator.first_tree},
                    {"members", members}});
  }
  return list;
}

Json Environment(const LogFacts& facts) {
  Json list = Json::array();
  for (const Variable& variable : facts.variables) {
    Json values = Json::array();
    for (uint32_t i = 0; i < variable.values.size(); ++i) {
      const auto count = std::count(variable.chosen.begin(), variable.chosen.end(), i + 1);
      values.push_back(
          {{"value", variable.values[i]},
           {"processes", count},
           {"first", facts.Where(Spot{variable.places[i].file, variable.places[i].line})}});
    }
    list.push_back({{"name", variable.name}, {"values", values}});
  }
  return list;
}

Json Connections(const LogFacts& facts) {
  Json links = Json::array();
  for (const HostLink& link : logs::HostLinks(facts)) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"by", link.kind},
                     {"inside_host", link.inside},
                     {"rank_pairs", link.pairs},
                     {"channels", link.channels},
                     {"first", facts.Where(link.first)}});
  }
  return {{"links", links},
          {"links_left_out", facts.links_left_out},
          {"rdma_devices", List(facts.network.ib)},
          {"socket_interfaces", List(facts.network.sockets)},
          {"nvls_available", facts.nvls_on.count},
          {"nvls_not_available", facts.nvls_off.count}};
}

Json Choices(const LogFacts& facts) {
  Json list = Json::array();
  for (const LoggedChoice& choice : facts.choices) {
    list.push_back({{"collective", facts.words[choice.collective]},
                    {"algorithm", facts.words[choice.algorithm]},
                    {"protocol", facts.words[choice.protocol]},
                    {"channels", choice.channels},
                    {"smallest", choice.smallest},
                    {"largest", choice.largest},
                    {"times", choice.times},
                    {"first", facts.Where(choice.first)}});
  }
  return list;
}

Json Results(const LogFacts& facts) {
  Json list = Json::array();
  for (const PerfTest& test : facts.perf.tests) {
    list.push_back({{"where", facts.Where(Spot{test.file, test.line})},
                    {"collective", test.collective},
                    {"ranks", test.ranks},
                    {"hosts", test.host_count},
                    {"first_hosts", {test.hosts[0], test.hosts[1]}},
                    {"device", test.device},
                    {"rows", test.rows},
                    {"smallest", test.smallest},
                    {"smallest_us", test.smallest_us},
                    {"peak_busbw_gbps", test.peak},
                    {"peak_bytes", test.peak_bytes},
                    {"average_busbw_gbps", test.average},
                    {"wrong", test.wrong},
                    {"finished", test.ends >= test.starts}});
  }
  return list;
}

Json Flights(const LogFacts& facts) {
  const flight_recorder::FlightRecord& flight = facts.flight;
  Json list = Json::array();
  for (const flight_recorder::GroupLine& line : flight_recorder::Overview(flight, true)) {
    for (const int64_t rank : line.ranks) {
      list.push_back({{"group", flight.groups[line.group].name},
                      {"description", flight.groups[line.group].description},
                      {"rank", rank},
                      {"last_enqueued", line.entered},
                      {"last_started", line.started},
                      {"last_completed", line.completed},
                      {"first_open", line.first_open},
                      {"open_operation", line.open},
                      {"open_frame", line.frame},
                      {"point_to_point_open", line.open_p2p}});
    }
  }
  return {{"dumps", flight.dumps.size()},
          {"entries", flight.entries},
          {"entries_left_out", flight.entries_left_out},
          {"ranks", list}};
}

Json TopologyList(const LogFacts& facts) {
  Json list = Json::array();
  for (const Topology& topology : facts.topologies.files) {
    if (topology.graph) {
      list.push_back({{"file", facts.files[topology.file].name}, {"graphs", topology.graphs}});
      continue;
    }
    list.push_back({{"file", facts.files[topology.file].name},
                    {"cpus", topology.cpus},
                    {"gpus", topology.gpus},
                    {"architecture", topology.architecture},
                    {"network_adapters", topology.nics},
                    {"links", topology.links},
                    {"link", topology.link_name}});
  }
  return list;
}

Json VerdictJson(const logs::Verdict& verdict) {
  return {{"text", verdict.text},
          {"certainty", verdict.certainty},
          {"finding", verdict.finding},
          {"class", verdict.cause_class},
          {"rank", verdict.rank},
          {"who", verdict.who},
          {"since", verdict.since},
          {"where", verdict.where},
          {"lines_that_follow", verdict.follows}};
}

}  // namespace

std::string LogsJson(const std::vector<std::string>& sections, const LogFacts& facts,
                     const logs::Diagnosis& diagnosis) {
  const auto wanted = [&](const char* name) {
    return sections.empty() || std::find(sections.begin(), sections.end(), name) != sections.end();
  };
  Json json = Json::object();
  if (wanted("verdict")) json["verdict"] = VerdictJson(diagnosis.verdict);
  if (wanted("read")) json["read"] = Read(facts);
  if (wanted("libraries")) json["libraries"] = Libraries(facts);
  // The last call of a rank is part of the rank.
  if (wanted("ranks") || wanted("operations")) json["communicators"] = Ranks(facts);
  if (wanted("environment")) json["environment"] = Environment(facts);
  if (wanted("connections")) json["connections"] = Connections(facts);
  if (wanted("choices")) json["choices"] = Choices(facts);
  if (wanted("results")) json["results"] = Results(facts);
  if (wanted("flight")) json["flight"] = Flights(facts);
  if (wanted("topology")) json["topology"] = TopologyList(facts);
  if (wanted("findings")) json["findings"] = Json::parse(FindingsJson(diagnosis.findings));
  return JsonText(json);
}

}  // namespace diapason::cli
