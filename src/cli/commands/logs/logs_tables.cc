#include "cli/commands/logs/logs_tables.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "flight_recorder/diagnose.h"
#include "logs/diagnose.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using logs::CommRank;
using logs::LogFacts;
using logs::LoggedChoice;
using logs::LoggedComm;
using logs::PerfTest;
using logs::RanksText;
using report::Table;

constexpr auto kLeft = Table::Align::kLeft;
constexpr auto kRight = Table::Align::kRight;

}  // namespace

std::string IndentedRows(const std::string& text) {
  std::string result;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) result += "  " + std::string(line) + "\n";
  }
  return result;
}

std::string MoreRows(size_t all, std::string_view noun) {
  if (all <= kMostRows) return "";
  return "  and " + Count(all - kMostRows, "more " + std::string(noun)) + "\n";
}

std::string LogChoices(const LogFacts& facts) {
  if (facts.choices.empty()) return "";
  std::vector<const LoggedChoice*> sorted;
  for (const LoggedChoice& choice : facts.choices) sorted.push_back(&choice);
  std::sort(sorted.begin(), sorted.end(), [&](const LoggedChoice* a, const LoggedChoice* b) {
    if (a->collective != b->collective) {
      return facts.words[a->collective] < facts.words[b->collective];
    }
    return std::pair(a->smallest, a->largest) < std::pair(b->smallest, b->largest);
  });
  Table table({"collective", "from", "to", "algorithm", "protocol", "channels", "times"});
  table.SetAlign({kLeft, kRight, kRight, kLeft, kLeft, kRight, kRight});
  for (size_t i = 0; i < sorted.size() && i < kMostRows; ++i) {
    const LoggedChoice& choice = *sorted[i];
    table.Add({facts.words[choice.collective], FormatBytes(choice.smallest),
               FormatBytes(choice.largest), facts.words[choice.algorithm],
               facts.words[choice.protocol],
               choice.channels < 0 ? "?" : std::to_string(choice.channels),
               std::to_string(choice.times)});
  }
  return "Chosen by the library\n" + IndentedRows(table.Text()) + MoreRows(sorted.size(), "choice");
}

std::string LogOperations(const LogFacts& facts) {
  Table table({"communicator", "ranks", "calls", "last opCount", "last collective", "elements"});
  table.SetAlign({kLeft, kLeft, kRight, kRight, kLeft, kRight});
  size_t rows = 0;
  for (const LoggedComm& communicator : facts.communicators) {
    // Ranks that stopped at the same call share a line.
    struct Group {
      std::vector<int64_t> ranks;
      uint64_t fewest = UINT64_MAX;  // calls of one rank
      uint64_t most = 0;
    };
    std::map<std::tuple<uint64_t, uint32_t, uint64_t>, Group> groups;
    for (const uint32_t index : communicator.members) {
      const CommRank& member = facts.members[index];
      if (member.operations == 0) continue;
      Group& group = groups[{member.op_count, member.collective, member.elements}];
      group.ranks.push_back(member.rank);
      group.fewest = std::min(group.fewest, member.operations);
      group.most = std::max(group.most, member.operations);
    }
    for (const auto& [last, group] : groups) {
      if (++rows > kMostRows) continue;
      std::string calls = std::to_string(group.most);
      if (group.fewest != group.most) calls = std::to_string(group.fewest) + " to " + calls;
      if (group.ranks.size() > 1) calls += " each";
      table.Add({communicator.id == 0 ? "?" : Format("0x{:x}", communicator.id),
                 RanksText(group.ranks), calls, Format("0x{:x}", std::get<0>(last)),
                 facts.words[std::get<1>(last)], std::to_string(std::get<2>(last))});
    }
  }
  if (rows == 0) return "";
  return "Collectives called\n" + IndentedRows(table.Text()) + MoreRows(rows, "line");
}

std::string LogResults(const LogFacts& facts) {
  if (facts.perf.tests.empty()) return "";
  Table table(
      {"test", "ranks", "hosts", "smallest", "latency us", "peak GB/s", "at", "average", "where"});
  table.SetAlign({kLeft, kRight, kLeft, kRight, kRight, kRight, kRight, kRight, kLeft});
  size_t rows = 0;
  for (const PerfTest& test : facts.perf.tests) {
    if (++rows > kMostRows) continue;
    std::string hosts = test.hosts[0];
    if (test.host_count == 2) hosts += " " + test.hosts[1];
    if (test.host_count > 2) hosts += Format(" +{}", test.host_count - 1);
    const bool any = test.rows > 0;
    table.Add({test.collective.empty() ? "?" : test.collective, std::to_string(test.ranks), hosts,
               any ? FormatBytes(test.smallest) : "-",
               any ? Format("{:.1f}", test.smallest_us) : "-",
               any ? Format("{:.2f}", test.peak) : "-", any ? FormatBytes(test.peak_bytes) : "-",
               test.ends > 0 ? Format("{:.2f}", test.average) : "-",
               facts.Where(logs::Spot{test.file, test.line})});
  }
  return "Results of tests\n" + IndentedRows(table.Text()) + MoreRows(rows, "test");
}

std::string LogFlights(const LogFacts& facts) {
  const flight_recorder::FlightRecord& flight = facts.flight;
  if (flight.dumps.empty()) return "";
  std::string text = Format("Flight recorder\n  {}, {} entries\n",
                            Count(flight.dumps.size(), "dump"), flight.entries);
  Table table({"group", "ranks", "entered", "started", "completed", "first open"});
  table.SetAlign({kLeft, kLeft, kRight, kRight, kRight, kLeft});
  size_t rows = 0;
  for (const flight_recorder::GroupLine& line : flight_recorder::Overview(flight, false)) {
    if (++rows > kMostRows) continue;
    const auto number = [](int64_t value) {
      return value < 0 ? std::string("-") : std::to_string(value);
    };
    std::string open = line.open;
    if (line.open_p2p > 0) {
      open += (open.empty() ? "" : "; ") + (line.open_p2p == 1
                                                ? std::string("1 send or receive")
                                                : Format("{} sends and receives", line.open_p2p));
    }
    const flight_recorder::Group& group = flight.groups[line.group];
    table.Add({group.name + (group.description.empty() ? "" : " " + group.description),
               RanksText(line.ranks), number(line.entered), number(line.started),
               number(line.completed), open});
  }
  return text + IndentedRows(table.Text()) + MoreRows(rows, "line");
}

}  // namespace diapason::cli
