#include "report/page_data.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "base/version.h"
#include "dataset/export.h"
#include "dataset/summary.h"
#include "report/page_parts.h"

namespace diapason::report {
namespace {

// The most important fact of the journals.
std::string JournalTitle(const PageData& data) {
  if (data.journals.empty()) return "collectives";
  if (data.agreement.compared > 0 && !data.agreement.agree()) return "ranks that did not agree";
  if (!data.learning.empty()) return "what a job learned";
  const auto any = [&](size_t PageJournal::*number) {
    return std::any_of(data.journals.begin(), data.journals.end(),
                       [&](const PageJournal& journal) { return journal.*number > 0; });
  };
  if (any(&PageJournal::decisions)) return "what a job decided";
  return any(&PageJournal::runs) ? "what a job ran" : "journals of a job";
}

// Real failures come before configurations that the library refuses by design: the section on
// failures has both.
void SortFailures(PageData* data) {
  const auto is = [](const PageFailure& failure, dataset::SampleOutcome outcome) {
    return failure.outcome == dataset::OutcomeName(outcome);
  };
  const auto real = [&](const PageFailure& failure) {
    return !is(failure, dataset::SampleOutcome::kRefused);
  };
  std::stable_partition(data->failures.begin(), data->failures.end(), real);
  size_t lost = 0;
  for (const PageFailure& failure : data->failures) {
    if (real(failure) && !is(failure, dataset::SampleOutcome::kWrong)) lost += failure.count;
  }
  std::erase_if(data->trust,
                [&](const Finding& finding) { return finding.id == "failures" && lost == 0; });
  for (Finding& finding : data->trust) {
    if (finding.id != "failures") continue;
    finding.title = Count(lost, "measurement") + " hung or crashed";
    finding.evidence = {"the part about failures names them"};
  }
}

// The first is the page's; each of the others gets a line.
PageHeadline TakeFirst(std::vector<PageHeadline> all, std::vector<PageHeadline>* others) {
  if (all.empty()) return {};
  others->assign(all.begin() + 1, all.end());
  return all.front();
}

// ", node0 and 3 more, 2026-11-18": where and when, as far as it is known.
std::string WhereAndWhen(const PageData& data) {
  std::set<std::string> hosts;
  double last = 0;
  for (const PagePlace& place : data.places) {
    last = std::max(last, place.last);
    for (const std::string_view host : Split(place.hosts, ',')) {
      if (!Trim(host).empty()) hosts.emplace(Trim(host));
    }
  }
  std::string text;
  if (!hosts.empty()) text += ", " + *hosts.begin();
  if (hosts.size() > 1) text += Format(" and {} more", hosts.size() - 1);
  const double when = last > 0 ? last : data.made;
  if (when > 0 && when < 1e11) text += ", " + UtcText(static_cast<time_t>(when), "%Y-%m-%d");
  return text;
}

// "NCCL: allreduce, node0, 2026-11-18": the default title of the page.
std::string MadeTitle(const PageData& data) {
  std::set<std::string> libraries;
  for (const PagePlace& place : data.places) {
    const Result<Library> library = ParseLibrary(place.library);
    std::string text = library.ok() ? std::string(LibraryTitle(library.value())) : place.library;
    if (!text.empty()) libraries.insert(text);
  }
  std::set<std::string> collectives;
  for (const PageGroup& group : data.groups) collectives.insert(group.context.collective);
  const std::string what = collectives.size() == 1  ? *collectives.begin()
                           : collectives.size() > 1 ? Count(collectives.size(), "collective")
                                                    : JournalTitle(data);
  const std::string name =
      libraries.empty() ? "diapason report" : Join({libraries.begin(), libraries.end()}, ", ");
  return name + ": " + what + WhereAndWhen(data);
}

// The number of a family determines its colour: families drawn together get different ones, those
// of different libraries may share. Sorted by name, so that they are stable between reports of a
// library.
void NumberFamilies(PageData* data) {
  using Name = std::pair<std::string, std::string>;
  const auto name = [&](int config) {
    const PageConfig& one = data->configs[static_cast<size_t>(config)];
    return Name(one.algorithm, one.protocol);
  };
  // One set per place, and one for all journals.
  std::vector<std::set<Name>> together(data->places.size() + 1);
  for (const PageGroup& group : data->groups) {
    for (const PageSize& size : group.sizes) {
      for (const PageCell& cell : size.cells) together[group.place].insert(name(cell.config));
    }
    for (const PageVerified& one : group.verified) together[group.place].insert(name(one.config));
  }
  for (const PageLearning& learning : data->learning) {
    for (const PageLearning::Arm& arm : learning.arms) together.back().insert(name(arm.config));
  }
  std::map<Name, int> numbers;
  for (size_t i = 1; i < data->configs.size(); ++i) numbers[name(static_cast<int>(i))] = 0;
  for (auto& [family, number] : numbers) {
    std::set<int> taken;
    for (const std::set<Name>& one : together) {
      if (!one.contains(family)) continue;
      for (const Name& other : one) {
        const auto known = numbers.find(other);
        if (known != numbers.end()) taken.insert(known->second);
      }
    }
    number = 1;
    while (taken.contains(number)) ++number;
  }
  for (size_t i = 1; i < data->configs.size(); ++i) {
    data->configs[i].family = numbers[name(static_cast<int>(i))];
  }
}

}  // namespace

ConfigBook::ConfigBook() { NumberOf(dataset::Point()); }

int ConfigBook::NumberOf(const dataset::Point& point) {
  const auto [found, added] = numbers_.try_emplace(
      Key(point.algorithm, point.protocol, point.channels, point.segment_bytes, point.environment),
      static_cast<int>(configs_.size()));
  if (added) {
    // An explicitly set environment is not the library's default.
    const bool set_only = !point.environment.empty() && point.algorithm.empty() &&
                          point.protocol.empty() && point.channels == 0 && point.segment_bytes == 0;
    configs_.push_back({set_only ? Join({"with", point.environment}, " ") : point.ConfigText(),
                        point.algorithm, point.protocol, point.channels, point.segment_bytes,
                        point.environment, 0});
  }
  return found->second;
}

int ConfigBook::NumberOf(Library library, Collective collective, const Config& config) {
  dataset::Point point;
  if (config.algorithm != kKeep) {
    point.algorithm = AlgorithmName(library, collective, config.algorithm);
  }
  if (config.protocol != kKeep) point.protocol = ProtocolName(library, config.protocol);
  point.channels = std::max(config.channels, 0);
  point.segment_bytes = config.segment_bytes;
  return NumberOf(point);
}

std::vector<PageConfig> ConfigBook::Finish() {
  numbers_.clear();
  return std::move(configs_);
}

size_t GroupBook::IndexOf(size_t place, const dataset::Point& point) {
  dataset::Point context = dataset::WithoutConfig(point);
  context.bytes = 0;
  const auto [found, added] = known_.try_emplace({place, context}, groups_->size());
  if (added) {
    PageGroup group;
    group.label = dataset::ContextText(context);
    dataset::Point plain = context;
    plain.kind = dataset::Point::Kind::kCollective;
    // The text after the collective and its comma.
    group.shape = dataset::ContextText(plain).substr(context.collective.size() + 2);
    group.place = place;
    if (context.kind == dataset::Point::Kind::kCollective) {
      group.bus_factor = dataset::BusFactorOf(context.collective, context.ranks);
    }
    group.context = std::move(context);
    groups_->push_back(std::move(group));
  }
  return found->second;
}

PageFigure RatioOf(const PageFigure& time, const PageFigure& other) {
  PageFigure ratio;
  ratio.samples = std::min(time.samples, other.samples);
  ratio.median = time.median / other.median;
  ratio.interval = {time.interval.low / other.interval.high,
                    time.interval.high / other.interval.low};
  return ratio;
}

const char* CertaintyName(Certainty certainty) {
  constexpr std::array<const char*, 4> kNames = {"clear", "few samples", "tie", "no default"};
  return kNames.at(static_cast<size_t>(certainty));
}

const PageCell* PageSize::Find(int config) const {
  for (const PageCell& cell : cells) {
    if (cell.config == config) return &cell;
  }
  return nullptr;
}

std::vector<PagePart> SplitByPlace(dataset::StoreContents contents, PageData* data) {
  struct Where {
    size_t part = 0;
    size_t run = 0;  // in it
  };
  std::vector<Where> where;
  std::vector<PagePart> parts;
  std::map<std::tuple<std::string, std::string, std::string, bool>, size_t> places;
  std::map<std::pair<size_t, bool>, size_t> numbers;
  std::map<std::pair<std::string, std::string>, PageVariable> variables;
  for (const dataset::SampleRun& run : contents.runs) {
    const dataset::MachineInfo& machine = run.machine;
    const auto [place, added] = places.try_emplace(
        {machine.library, machine.library_version, machine.gpu, machine.simulated},
        data->places.size());
    if (added) {
      data->places.push_back({machine.library, machine.library_version, machine.gpu, machine.driver,
                              machine.topology, machine.hosts, machine.tool, machine.simulated, 0,
                              0, 0, 0});
    }
    PagePlace& shown = data->places[place->second];
    ++shown.runs;
    if (run.started > 0) {
      shown.first = shown.first > 0 ? std::min(shown.first, run.started) : run.started;
      shown.last = std::max(shown.last, run.started);
    }
    const auto [part, new_part] =
        numbers.try_emplace({place->second, run.source == "verify"}, parts.size());
    if (new_part) parts.push_back({place->second, run.source == "verify", {}});
    where.push_back({part->second, parts[part->second].contents.runs.size()});
    parts[part->second].contents.runs.push_back(run);
    data->runs.push_back({run.id, run.source, run.origin, run.started,
                          dataset::StateName(run.state), place->second, 0});
    for (const auto& [name, value] : machine.environment) ++variables[{name, value}].runs;
  }
  for (dataset::StoredSample& record : contents.records) {
    const Where& target = where[record.run];
    PagePart& part = parts[target.part];
    ++data->runs[record.run].samples;
    ++data->places[part.place].samples;
    ++data->samples;
    if (data->places[part.place].simulated) ++data->simulated;
    if (!record.sample.point.environment.empty()) {
      for (const std::string_view pair : Split(record.sample.point.environment, ' ')) {
        const size_t equals = std::min(pair.find('='), pair.size());
        const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
        ++variables[{std::string(pair.substr(0, equals)), std::string(value)}].samples;
      }
    }
    part.contents.records.push_back({target.run, std::move(record.sample)});
  }
  for (auto& [key, variable] : variables) {
    variable.name = key.first;
    variable.value = key.second;
    data->variables.push_back(std::move(variable));
  }
  return parts;
}

PageData MakePageData(PageInput input) {
  PageData data;
  data.version = kVersion;
  data.made = input.now;
  data.notes = std::move(input.notes);
  data.doctor = std::move(input.doctor);
  data.trust = dataset::Check(input.contents);
  ConfigBook configs;
  GroupBook groups(&data.groups);
  const std::vector<PagePart> parts = SplitByPlace(std::move(input.contents), &data);
  for (const PagePart& part : parts) {
    if (part.verification) continue;
    AddSearch(part, &configs, &groups, &data);
    AddProgress(part, &groups, &data);
  }
  for (const PagePart& part : parts) {
    if (part.verification) AddVerification(part, &configs, &groups, &data);
  }
  AddMaps(input.policies, &configs, &data);
  JudgeByPolicies(input.policies, &configs, &data);
  AddJournals(input.journals, &configs, &data);
  data.configs = configs.Finish();
  NumberFamilies(&data);
  SortFailures(&data);
  data.headline =
      TakeFirst(MakeHeadlines(data, dataset::Point::Kind::kCollective), &data.other_headlines);
  data.iterations =
      TakeFirst(MakeHeadlines(data, dataset::Point::Kind::kIteration), &data.other_iterations);
  data.title = input.title.empty() ? MadeTitle(data) : input.title;
  data.sentence = input.headline;
  data.use = UseOf(input.policies, data.samples > 0 && data.simulated == data.samples);
  return data;
}

}  // namespace diapason::report
