#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/interval_text.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/ranks.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "comm/backend_facts.h"
#include "domain/collectives.h"
#include "domain/decision.h"
#include "env_tune/bench_figures.h"
#include "measure/iteration.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using measure::Bucket;
using measure::IterationSpec;
using measure::IterationTimes;
using nlohmann::ordered_json;
using report::Table;

struct BenchIterationOptions {
  RankOptions ranks;
  std::string preset = "ddp";
  std::string compute;  // "": 5ms on GPUs, 20ms elsewhere
  int buckets = 0;
  int layers = 0;
  std::string bytes;
  std::string overlap = "on";
  int steps = 20;
  int warmups = 5;
  int threads = 1;
  std::string type = "float";
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  std::string only;
  std::string reward_file;
  bool json = false;
  bool figures = false;  // for `env tune`: a line that it reads

  bool Chooses() const { return !algorithm.empty() || !protocol.empty() || channels != 0; }
};

constexpr double kLongestLimit = 86400;

Result<IterationSpec> MakeSpec(const BenchIterationOptions& options, bool host) {
  measure::PresetOptions preset;
  preset.host = host;
  const bool ddp = FoldName(options.preset) == "ddp";
  if (options.buckets != 0 && !ddp)
    return Invalid("--buckets is only for ddp; the other presets have --layers");
  if (options.layers != 0 && ddp) return Invalid("--layers is not for ddp; use --buckets");
  preset.parts = ddp ? options.buckets : options.layers;
  if (!options.bytes.empty()) {
    const Result<uint64_t> bytes = ParseBytes(options.bytes);
    if (!bytes.ok()) return bytes.status().WithContext("--bucket-bytes");
    if (bytes.value() == 0) return Invalid("--bucket-bytes must be at least one element");
    preset.bytes = bytes.value();
  }
  ASSIGN_OR_RETURN(IterationSpec made, measure::PresetSpec(options.preset, preset));
  IterationSpec& spec = made;
  const Result<double> compute =
      ParseSeconds(options.compute.empty() ? (host ? "20ms" : "5ms") : options.compute);
  if (!compute.ok()) return compute.status().WithContext("--compute");
  spec.compute = compute.value();
  const Result<DataType> type = ParseDataType(options.type);
  if (!type.ok()) return type.status().WithContext("--datatype");
  spec.type = type.value();
  spec.overlap = options.overlap == "on";
  spec.steps = options.steps;
  spec.warmups = options.warmups;
  spec.threads = options.threads;
  spec.limit = std::min(LimitOf(options.ranks), kLongestLimit);
  RETURN_IF_ERROR(measure::CheckSpec(spec));
  return made;
}

Collective CollectiveOf(const Bucket& bucket) { return NamesOf(bucket.operation); }

std::string NameOf(const Bucket& bucket) {
  return std::string(CollectiveName(CollectiveOf(bucket)));
}

// Applies the requested configuration to the buckets that support it.
Status Configure(const BenchIterationOptions& options, Library library, IterationSpec* spec) {
  std::optional<Collective> only;
  if (!options.only.empty()) {
    const Result<Collective> collective = ParseCollective(Library::kGloo, options.only);
    if (!collective.ok()) return collective.status().WithContext("--only");
    only = collective.value();
  }
  const bool tuner = AsksTuner(library);
  int configured = 0;
  for (Bucket& bucket : spec->buckets) {
    const Collective collective = CollectiveOf(bucket);
    if (only.has_value() && collective != *only) continue;
    // The library does not ask its tuner about this collective.
    if (tuner && !CanChoose(library, collective) && !only.has_value()) continue;
    if (!options.algorithm.empty()) {
      const Result<int> algorithm = ParseAlgorithm(library, collective, options.algorithm);
      if (!algorithm.ok()) return algorithm.status().WithContext("--algorithm");
      bucket.config.algorithm = algorithm.value();
    }
    if (!options.protocol.empty()) {
      const Result<int> protocol = ParseProtocol(library, options.protocol);
      if (!protocol.ok()) return protocol.status().WithContext("--protocol");
      bucket.config.protocol = protocol.value();
    }
    bucket.config.channels = options.channels;
    const Config& config = bucket.config;
    if (tuner && config.algorithm != kKeep && config.protocol != kKeep &&
        !PairExists(collective, config.algorithm, config.protocol)) {
      return Invalid(ConfigText(library, collective, config) + " does not exist for " +
                     NameOf(bucket) + "; use --only to name the collective that it is for");
    }
    ++configured;
  }
  if (configured > 0) return {};
  return Invalid(spec->preset + " has no bucket to which this configuration applies");
}

// "4 x allreduce 25MiB, ring/simple"
std::string BucketsText(const IterationSpec& spec, Library library) {
  std::vector<std::string> names;
  for (const Bucket& bucket : spec.buckets) {
    std::string name = NameOf(bucket) + " " + FormatBytes(bucket.bytes);
    if (!bucket.config.IsDefault()) {
      name += " (" + ConfigText(library, CollectiveOf(bucket), bucket.config) + ")";
    }
    if (spec.communicators > 1) name += Format(" on communicator {}", bucket.communicator + 1);
    names.push_back(std::move(name));
  }
  return measure::CountedText(names);
}

std::string Milliseconds(double seconds) { return Format("{:.3f}", seconds * 1e3); }

void AddRow(const std::string& title, const std::vector<double>& samples, Table* table) {
  const Interval interval = MedianInterval95(samples);
  table->Add({title, Milliseconds(Mean(samples)), Milliseconds(Median(samples)),
              IntervalText(Milliseconds(interval.low), Milliseconds(interval.high), samples.size()),
              Milliseconds(Quantile(samples, 0.95)), Milliseconds(Quantile(samples, 0.99))});
}

void PrintText(const measure::Subject& subject, const IterationSpec& spec,
               const IterationTimes& times) {
  if (subject.simulated) {
    PrintOut("all figures are simulated; nothing was measured\n");
  }
  PrintOut("iteration  {}, {} on {}, {}\n", spec.preset,
           Count(static_cast<size_t>(subject.ranks), "rank"),
           Count(static_cast<size_t>(subject.nodes), "node"), subject.backend);
  if (const std::string crowded = measure::CrowdedText(subject); !crowded.empty()) {
    PrintOut("crowded    {}\n", crowded);
  }
  PrintOut("buckets    {}, {}\n", BucketsText(spec, subject.library), DataTypeName(spec.type));
  PrintOut("compute    {:.6g} ms per step, overlap {}\n", spec.compute * 1e3,
           spec.overlap ? "on" : "off");
  PrintOut(
      "measured   {} of each kind after {} to warm up; times are those of the slowest rank\n\n",
      Count(times.steps.size(), "step"), spec.warmups);
  Table table({"ms", "mean", "p50", "[95 %] or (range)", "p95", "p99"});
  using enum Table::Align;
  table.SetAlign({kLeft, kRight, kRight, kRight, kRight, kRight});
  table.SetImportance({9, 2, 9, 5, 4, 3});
  AddRow("step", times.steps, &table);
  AddRow("compute alone", times.compute, &table);
  AddRow("communication alone", times.communication, &table);
  const double exposed = measure::ExposedSeconds(times);
  PrintOut("{}\nexposed communication  {:.3f} ms per step, {:.1f} % of it\n", table.Text(),
           exposed * 1e3, 100 * exposed / std::max(Median(times.steps), 1e-12));
  PrintOut("overlap efficiency     {:.1f} % of the communication is hidden behind compute\n",
           100 * measure::OverlapEfficiency(times));
}

// A precision of picoseconds is enough.
double Rounded(double seconds) { return std::round(seconds * 1e12) / 1e12; }

ordered_json SamplesJson(const std::vector<double>& samples) {
  const Interval interval = MedianInterval95(samples);
  ordered_json json{
      {"mean", Rounded(Mean(samples))},          {"p50", Rounded(Median(samples))},
      {"p50_low", Rounded(interval.low)},        {"p50_high", Rounded(interval.high)},
      {"p95", Rounded(Quantile(samples, 0.95))}, {"p99", Rounded(Quantile(samples, 0.99))},
      {"seconds", ordered_json::array()}};
  if (!HasInterval95(samples.size())) json["range"] = true;  // p50_low and p50_high are of all
  for (const double seconds : samples) json["seconds"].push_back(Rounded(seconds));
  return json;
}

void PrintFigures(const IterationSpec& spec, const measure::IterationTimes& times) {
  env_tune::BenchFigures figures;
  figures.seconds = Median(times.steps);
  for (const Bucket& bucket : spec.buckets) {
    figures.sizes.emplace_back(static_cast<double>(bucket.bytes), 0.0);
  }
  PrintOut("{}\n", env_tune::EncodeFigures(figures));
}

void PrintJson(const measure::Subject& subject, const IterationSpec& spec,
               const IterationTimes& times) {
  ordered_json buckets = ordered_json::array();
  for (const Bucket& bucket : spec.buckets) {
    buckets.push_back(
        {{"collective", NameOf(bucket)},
         {"bytes", bucket.bytes},
         {"communicator", bucket.communicator},
         {"after", bucket.after},
         {"before", bucket.before},
         {"configuration", ConfigText(subject.library, CollectiveOf(bucket), bucket.config)}});
  }
  const double exposed = measure::ExposedSeconds(times);
  const ordered_json json{
      {"preset", spec.preset},
      {"backend", subject.backend},
      {"description", subject.description},
      {"simulated", subject.simulated},
      {"ranks", subject.ranks},
      {"nodes", subject.nodes},
      {"type", DataTypeName(spec.type)},
      {"overlap", spec.overlap},
      {"compute_seconds", spec.compute},
      {"chunks", spec.chunks},
      {"communicators", spec.communicators},
      {"buckets", buckets},
      {"warmups", spec.warmups},
      {"step", SamplesJson(times.steps)},
      {"compute", SamplesJson(times.compute)},
      {"communication", SamplesJson(times.communication)},
      {"exposed_seconds", Rounded(exposed)},
      {"exposed_share", Rounded(exposed / std::max(Median(times.steps), 1e-12))},
      {"overlap_efficiency", Rounded(measure::OverlapEfficiency(times))}};
  PrintOut("{}\n", JsonText(json));
}

Result<int> LeadIteration(const BenchIterationOptions& options, measure::RankMeasurer* measurer) {
  const measure::Subject& subject = measurer->subject();
  ASSIGN_OR_RETURN(IterationSpec spec, MakeSpec(options, !AsksTuner(subject.library)));
  if (options.Chooses()) RETURN_IF_ERROR(Configure(options, subject.library, &spec));
  ASSIGN_OR_RETURN(const IterationTimes times, measurer->Iterate(spec));
  if (options.figures) {
    PrintFigures(spec, times);
  } else if (options.json) {
    PrintJson(subject, spec, times);
  } else {
    PrintText(subject, spec, times);
  }
  std::fflush(stdout);
  if (options.reward_file.empty()) return kExitFine;
  const Status written = measure::AppendRewards(options.reward_file, spec, times, subject.nodes,
                                                subject.ranks, subject.simulated);
  RETURN_IF_ERROR(written.WithContext("--reward-file"));
  return kExitFine;
}

Result<int> RunIteration(const BenchIterationOptions& options) {
  // Before any rank is started.
  RETURN_IF_ERROR(MakeSpec(options, false));
  if (!options.only.empty() && !options.Chooses()) {
    return Invalid("--only needs --algorithm, --protocol or --channels");
  }
  return MeasureWithRanks(
      options.ranks, options.Chooses(),
      [&options](measure::RankMeasurer* measurer) { return LeadIteration(options, measurer); });
}

}  // namespace

void AddBenchIteration(CommandLine* bench, CommandAction* run) {
  auto options = std::make_shared<BenchIterationOptions>();
  CommandLine* command = bench->AddCommand(
      "iteration", "Time training steps that overlap compute with collectives in buckets");
  command->AddOption("PRESET", options->preset, "Kind of training step: ddp, fsdp, tp or moe")
      ->Words({"ddp", "fsdp", "tp", "moe"})
      ->Check(ReadBy([](const std::string& name) { return measure::PresetSpec(name, {}); }))
      ->ShowDefault();
  command->AddOption("--compute", options->compute, "Compute time of a step")
      ->TypeName("TIME")
      ->Check(ReadBy(ParseSeconds))
      ->Default("5ms; 20ms without a GPU");
  command->AddOption("--buckets", options->buckets, "Number of gradient buckets, for ddp")
      ->Default("4");
  command->AddOption("--layers", options->layers, "Number of layers, for fsdp, tp and moe")
      ->Default("4");
  command
      ->AddOption(
          "--bucket-bytes", options->bytes,
          "Size of each bucket; for allgather, reducescatter and alltoall the total of all ranks")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes))
      ->Default("that of the preset, smaller without a GPU");
  command->AddOption("--overlap", options->overlap, "Whether to overlap compute with collectives")
      ->TypeName("on|off")
      ->Check(OneOf({"on", "off"}))
      ->ShowDefault();
  command->AddOption("--steps", options->steps, "Number of measured steps of each kind")
      ->ShowDefault();
  command->AddOption("--warmup", options->warmups, "Number of warm-up steps of each kind")
      ->ShowDefault();
  command->AddOption("--threads", options->threads, "Number of compute threads, without a GPU")
      ->ShowDefault();
  command->AddOption("-d,--datatype", options->type, "Data type: " + Join(DataTypeWords(), ", "))
      ->TypeName("NAME")
      ->Words(DataTypeWords())
      ->Check(ReadBy(ParseDataType))
      ->ShowDefault();
  AddRankOptions(command, &options->ranks);
  command->Heading("Configuration");
  command->AddOption("--algorithm", options->algorithm, "Algorithm to run the buckets with")
      ->TypeName("NAME");
  command->AddOption("--protocol", options->protocol, "Protocol to run the buckets with")
      ->TypeName("NAME");
  command->AddOption("--channels", options->channels, "Number of channels to run the buckets with")
      ->Check(Range(1, 1024));
  command
      ->AddOption("--only", options->only,
                  "Collective that --algorithm, --protocol and --channels apply to")
      ->TypeName("NAME")
      ->Words(TunedCollectives())
      ->Check(
          ReadBy([](const std::string& name) { return ParseCollective(Library::kGloo, name); }));
  command->Heading("Output");
  command
      ->AddOption("--reward-file", options->reward_file,
                  "File to append collType,nBytes,nNodes,nRanks,latency_ms to, one line per step")
      ->TypeName("FILE");
  command->AddJson(options->json, "Print JSON, with the time of every step");
  command->AddFormat();
  command->AddInternalFlag("--figures", options->figures);
  command->Example("diapason bench iteration ddp -g 4", "Time the steps of data-parallel training");
  command->Example("diapason bench iteration fsdp -g 4 --compute 10ms --overlap off");
  command->Callback([options, run] { *run = [options] { return RunIteration(*options); }; });
}

}  // namespace diapason::cli
