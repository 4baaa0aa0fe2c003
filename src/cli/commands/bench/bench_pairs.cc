#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "measure/pairs.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using measure::OddOne;
using measure::PairFigure;
using measure::RankMeasurer;
using nlohmann::ordered_json;

// A wider matrix is printed as a list.
constexpr size_t kWidestMatrix = 16;

struct PairsOptions {
  RankOptions ranks;
  std::string bytes;
  int iterations = 10;
  int rounds = 3;
  bool by_host = false;
  double margin = 0.1;
  bool json = false;
};

// The names of the compared items: ranks, or hosts (the first rank of each).
struct RankOnHost {
  int rank = 0;
  std::string name;
  std::string host;
};

std::vector<RankOnHost> Members(const PairsOptions& options,
                                const std::vector<std::string>& hosts) {
  std::vector<RankOnHost> members;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const bool known = std::any_of(members.begin(), members.end(), [&](const RankOnHost& member) {
      return member.host == hosts[rank];
    });
    if (options.by_host && known) continue;
    members.push_back({static_cast<int>(rank),
                       options.by_host ? hosts[rank] : Format("rank {}", rank), hosts[rank]});
  }
  return members;
}

Result<std::vector<PairFigure>> MeasurePairs(const PairsOptions& options, RankMeasurer* measurer,
                                             const std::vector<RankOnHost>& members,
                                             uint64_t bytes) {
  std::vector<PairFigure> pairs;
  for (size_t first = 0; first < members.size(); ++first) {
    for (size_t second = first + 1; second < members.size(); ++second) {
      PairFigure pair;
      pair.first = static_cast<int>(first);
      pair.second = static_cast<int>(second);
      pair.same_host = members[first].host == members[second].host;
      pairs.push_back(pair);
    }
  }
  // Measures all pairs in each round, so that drift affects all pairs equally.
  std::vector<std::vector<double>> rounds(pairs.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const int first = members[static_cast<size_t>(pairs[i].first)].rank;
      const int second = members[static_cast<size_t>(pairs[i].second)].rank;
      ASSIGN_OR_RETURN(const measure::Measurement measurement,
                       measurer->MeasurePair(first, second, bytes, options.iterations));
      if (measurement.outcome != dataset::SampleOutcome::kFine) {
        return PeerLost(Format("between rank {} and rank {}: ", first, second) + measurement.note);
      }
      rounds[i].push_back(static_cast<double>(bytes) / measurement.seconds);
    }
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].bandwidth = Median(rounds[i]);
    const auto [low, high] = std::minmax_element(rounds[i].begin(), rounds[i].end());
    pairs[i].spread = (*high - *low) / pairs[i].bandwidth;
  }
  return pairs;
}

// Links of less than 0.1 GB/s, such as those of Ethernet, with further digits.
std::string GigabytesText(double bytes_per_second) {
  const double gigabytes = bytes_per_second * 1e-9;
  return gigabytes < 0.1 ? Format("{:.4f}", gigabytes) : Format("{:.2f}", gigabytes);
}

std::string OddText(const OddOne& one, const std::vector<PairFigure>& pairs,
                    const std::vector<RankOnHost>& members) {
  std::string who;
  if (one.member >= 0) {
    who = members[static_cast<size_t>(one.member)].name +
          Format(" ({} of its links)", one.pairs.size());
  } else {
    const PairFigure& pair = pairs[one.pairs[0]];
    who = members[static_cast<size_t>(pair.first)].name + " - " +
          members[static_cast<size_t>(pair.second)].name;
  }
  return Format("{}: {:.0f} % of the usual {} GB/s {}", who, one.share * 100,
                GigabytesText(one.usual), one.same_host ? "inside a host" : "between hosts");
}

void PrintTable(const std::vector<PairFigure>& pairs, const std::vector<RankOnHost>& members) {
  if (members.size() <= kWidestMatrix) {
    std::vector<std::string> titles = {"GB/s each way"};
    for (const RankOnHost& member : members) titles.push_back(member.name);
    report::Table table(titles);
    table.SetAlign(std::vector<report::Table::Align>(titles.size(), report::Table::Align::kRight));
    for (size_t row = 0; row < members.size(); ++row) {
      std::vector<std::string> cells(titles.size(), "");
      cells[0] = members[row].name;
      for (const PairFigure& pair : pairs) {
        const auto first = static_cast<size_t>(pair.first);
        const auto second = static_cast<size_t>(pair.second);
        if (first == row) cells[second + 1] = GigabytesText(pair.bandwidth);
        if (second == row) cells[first + 1] = GigabytesText(pair.bandwidth);
      }
      table.Add(std::move(cells));
    }
    WriteOut(table.Text());
    return;
  }
  report::Table table({"pair", "GB/s each way", "spread"});
  table.SetAlign(
      {report::Table::Align::kLeft, report::Table::Align::kRight, report::Table::Align::kRight});
  for (const PairFigure& pair : pairs) {
    table.Add({members[static_cast<size_t>(pair.first)].name + " - " +
                   members[static_cast<size_t>(pair.second)].name,
               GigabytesText(pair.bandwidth), Format("{:.0f} %", pair.spread * 100)});
  }
  WriteOut(table.Text());
}

void PrintJson(const measure::Subject& subject, const std::vector<PairFigure>& pairs,
               const std::vector<RankOnHost>& members, const std::vector<OddOne>& odd,
               uint64_t bytes) {
  ordered_json json;
  json["backend"] = subject.backend;
  json["simulated"] = subject.simulated;
  json["bytes"] = bytes;
  ordered_json list = ordered_json::array();
  for (const PairFigure& pair : pairs) {
    list.push_back({{"first", members[static_cast<size_t>(pair.first)].name},
                    {"second", members[static_cast<size_t>(pair.second)].name},
                    {"same_host", pair.same_host},
                    {"gb_per_s", pair.bandwidth * 1e-9},
                    {"spread", pair.spread}});
  }
  json["pairs"] = std::move(list);
  ordered_json ones = ordered_json::array();
  for (const OddOne& one : odd) ones.push_back(OddText(one, pairs, members));
  json["odd"] = std::move(ones);
  PrintOut("{}\n", JsonText(json));
}

Result<int> LeadPairs(const PairsOptions& options, RankMeasurer* measurer) {
  const measure::Subject& subject = measurer->subject();
  const bool gpu = AsksTuner(subject.library);
  const std::string text = options.bytes.empty() ? (gpu ? "64M" : "4M") : options.bytes;
  const Result<uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return bytes.status().WithContext("-b");
  if (bytes.value() == 0) return Invalid("-b must be at least one byte");
  const std::vector<RankOnHost> members = Members(options, measurer->subject().hosts);
  if (members.size() < 2) {
    return Invalid(options.by_host ? "all ranks are on one host; omit --by-host to compare ranks"
                                   : "pairs need at least two ranks");
  }
  ASSIGN_OR_RETURN(const std::vector<PairFigure> pairs,
                   MeasurePairs(options, measurer, members, bytes.value()));
  const std::vector<OddOne> odd = measure::FindOddOnes(pairs, options.margin);
  if (options.json) {
    PrintJson(subject, pairs, members, odd, bytes.value());
    return odd.empty() ? kExitFine : kExitFailed;
  }
  PrintOut("# {}, {}{}; {} at a time both ways, {} of {}\n", subject.description,
           Count(pairs.size(), "pair"), subject.simulated ? "; every figure is simulated" : "",
           FormatBytes(bytes.value()), Count(static_cast<size_t>(options.rounds), "round"),
           options.iterations);
  PrintTable(pairs, members);
  if (odd.empty()) {
    PrintOut(
        "no outlier: no link is {:.0f} % slower than the others of its kind and beyond their "
        "normal "
        "variation\n",
        100 * options.margin);
    return kExitFine;
  }
  for (const OddOne& one : odd) {
    PrintOut("outlier: {}\n", OddText(one, pairs, members));
  }
  return kExitFailed;
}

}  // namespace

void AddBenchPairs(CommandLine* bench, CommandAction* run) {
  auto options = std::make_shared<PairsOptions>();
  CommandLine* command = bench->AddCommand(
      "pairs",
      "Time every pair of ranks or hosts, and name the pairs that are slower than the others");
  command->AddOption("-b,--size", options->bytes, "Bytes that both ranks send at a time")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes))
      ->Default("64M on GPUs, else 4M");
  command->AddOption("-n,--iters", options->iterations, "Number of transfers in a round")
      ->Check(Range(1, 1000000))
      ->ShowDefault();
  command->AddOption("--rounds", options->rounds, "Number of rounds over all pairs")
      ->Check(Range(1, 10000))
      ->ShowDefault();
  command->AddFlag("--by-host", options->by_host,
                   "Compare hosts, with one rank of each, instead of ranks");
  command->AddShare(
      "--margin", options->margin,
      "Report a link as an outlier if it is slower than usual by more than this share", 0.001,
      0.99);
  command->AddJson(options->json);
  command->AddFormat();
  AddRankOptions(command, &options->ranks);
  command->Example("diapason bench pairs -g 4", "Find the links that are slower than the others");
  command->Example("srun -N 16 --ntasks-per-node 1 diapason bench pairs --by-host",
                   "Find the slow hosts among sixteen");
  command->ExitStatus(kExitFailed, "a link is an outlier, or ranks failed");
  command->Callback([options, run] {
    *run = [options] {
      return MeasureWithRanks(options->ranks, false, [&options](measure::RankMeasurer* measurer) {
        return LeadPairs(*options, measurer);
      });
    };
  });
}

}  // namespace diapason::cli
