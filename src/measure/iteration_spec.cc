#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"
#include "measure/iteration.h"

namespace diapason::measure {
namespace {

constexpr int kMostSteps = 1000000;
constexpr int kMostChunks = 65536;
constexpr size_t kMostBuckets = 4096;
constexpr int kMostParts = 1024;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr int kMostCommunicators = 8;
constexpr int kMostThreads = 1024;
constexpr double kMostSeconds = 3600;
constexpr double kLongestLimit = 86400;
constexpr size_t kLongestName = 32;
constexpr size_t kLongestText = 1 << 20;
constexpr std::string_view kFirstWord = "iteration";
constexpr std::string_view kLastWord = " end";  // text that was cut off does not have it

struct Preset {
  const char* name;
  int parts;
  uint64_t gpu_bytes;
  uint64_t host_bytes;
};
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr std::array<Preset, 4> kPresets = {{{"ddp", 4, 25 * kMiB, kMiB},
                                             {"fsdp", 4, 32 * kMiB, kMiB},
                                             {"tp", 4, 16 * kMiB, kMiB / 4},
                                             {"moe", 4, 8 * kMiB, kMiB / 4}}};

// In every preset a backward pass computes twice what the forward pass does.

// The forward pass, then one bucket of gradients after each part of the backward pass; all are
// needed at the end.
void FillDdp(int parts, uint64_t bytes, IterationSpec* spec) {
  spec->chunks = 3 * parts;
  for (int i = 0; i < parts; ++i) {
    spec->buckets.push_back(
        {Operation::kAllReduce, bytes, 0, parts + 2 * (i + 1), spec->chunks, {}});
  }
}

// A layer's parameters are gathered while the layer before it computes, in both directions; in the
// backward pass its gradients are scattered while the next one computes. The last layer's
// parameters are still there when the backward pass begins with it.
void FillFsdp(int layers, uint64_t bytes, IterationSpec* spec) {
  spec->chunks = 3 * layers;
  std::vector<Bucket>& buckets = spec->buckets;
  for (int layer = 0; layer < layers; ++layer) {
    buckets.push_back({Operation::kAllGather, bytes, 0, std::max(0, layer - 1), layer, {}});
  }
  // What is needed first begins first: parameters before gradients.
  for (int turn = 0; turn <= layers; ++turn) {
    const int begin = layers + 2 * turn;
    if (turn + 1 < layers) {
      buckets.push_back({Operation::kAllGather, bytes, 0, begin, begin + 2, {}});
    }
    if (turn > 0) {
      buckets.push_back({Operation::kReduceScatter, bytes, 0, begin, spec->chunks, {}});
    }
  }
}

// Half a layer, then its activations are added up, and nothing goes on before they are there.
void FillTp(int layers, uint64_t bytes, IterationSpec* spec) {
  spec->chunks = 2 * layers;
  for (int half = 1; half <= 2 * layers; ++half) {
    spec->buckets.push_back({Operation::kAllReduce, bytes, 0, half, half, {}});
  }
}

// A layer is attention, then experts. Tokens travel to the experts and back, and all ranks wait;
// on a second communicator the next layer's parameters arrive beside the whole layer, and the
// layer's gradients are added up from its middle on.
void FillMoe(int layers, uint64_t bytes, IterationSpec* spec) {
  spec->chunks = 2 * layers;
  spec->communicators = 2;
  std::vector<Bucket>& buckets = spec->buckets;
  for (int layer = 0; layer < layers; ++layer) {
    const int begin = 2 * layer;
    if (layer + 1 < layers) {
      buckets.push_back({Operation::kAllGather, bytes, 1, begin, begin + 2, {}});
    }
    buckets.push_back({Operation::kAllToAll, bytes, 0, begin + 1, begin + 1, {}});
    buckets.push_back({Operation::kAllReduce, bytes, 1, begin + 1, spec->chunks, {}});
    buckets.push_back({Operation::kAllToAll, bytes, 0, begin + 2, begin + 2, {}});
  }
}

Status CheckRange(const char* what, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  return Invalid(Format("{} is {:g}; it can be from {:g} to {:g}", what, value, least, most));
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

Status CheckBucket(const IterationSpec& spec, const Bucket& bucket) {
  if (!CollectiveOf(bucket.operation).has_value() || HasRoot(bucket.operation)) {
    return Invalid(
        Format("{} is no bucket: all_reduce, all_gather, reduce_scatter and all_to_all "
               "are",
               OperationName(bucket.operation)));
  }
  if (bucket.bytes < SizeOf(spec.type) || bucket.bytes > kMostBytes) {
    return Invalid(
        Format("{} bytes; from one element to {} will do", bucket.bytes, FormatBytes(kMostBytes)));
  }
  if (bucket.communicator < 0 || bucket.communicator >= spec.communicators) {
    return Invalid(Format("there is no communicator {}; there are {}", bucket.communicator,
                          spec.communicators));
  }
  if (bucket.after < 0 || bucket.before < bucket.after || bucket.before > spec.chunks) {
    return Invalid(Format("it begins after chunk {} and is needed before chunk {} of {}",
                          bucket.after, bucket.before, spec.chunks));
  }
  return {};
}

// "name=value" off the front of the text.
Status TakeField(std::string_view* text, std::string_view name, std::string_view* value) {
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view field = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  if (field.size() <= name.size() || field.substr(0, name.size()) != name ||
      field[name.size()] != '=') {
    return Invalid(Format("'{}=' expected", std::string(name)));
  }
  *value = field.substr(name.size() + 1);
  return {};
}

template <typename Integer>
bool ReadInteger(std::string_view text, Integer* value) {
  int64_t number = 0;
  if (!ParseSigned(text, &number) || !std::in_range<Integer>(number)) return false;
  *value = static_cast<Integer>(number);
  return true;
}

bool ReadDouble(std::string_view text, double* value) {
  const std::string copy(text);
  if (copy.empty() || copy[0] < '0' || copy[0] > '9') return false;
  char* end = nullptr;
  *value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() && std::isfinite(*value);
}

Result<Bucket> ReadBucket(std::string_view text) {
  const std::vector<std::string_view> fields = Split(text, ':');
  Bucket bucket;
  if (fields.size() != 9 || !ReadInteger(fields[1], &bucket.bytes) ||
      !ReadInteger(fields[2], &bucket.communicator) || !ReadInteger(fields[3], &bucket.after) ||
      !ReadInteger(fields[4], &bucket.before) ||
      !ReadInteger(fields[5], &bucket.config.algorithm) ||
      !ReadInteger(fields[6], &bucket.config.protocol) ||
      !ReadInteger(fields[7], &bucket.config.channels) ||
      !ReadInteger(fields[8], &bucket.config.segment_bytes)) {
    return Invalid("nine fields, OPERATION and eight numbers, expected");
  }
  ASSIGN_OR_RETURN(const Operation operation, ParseOperation(std::string(fields[0])));
  bucket.operation = operation;
  return bucket;
}

Result<IterationSpec> Read(std::string_view text) {
  IterationSpec spec;
  std::string_view value;
  Status status;
  if (!text.starts_with(std::string(kFirstWord) + " ") || !text.ends_with(kLastWord)) {
    return Invalid("it does not begin with 'iteration' and end with 'end'");
  }
  text.remove_prefix(kFirstWord.size() + 1);
  text.remove_suffix(std::min(kLastWord.size(), text.size()));
  if (status = TakeField(&text, "preset", &value); !status.ok()) return status;
  spec.preset = value;
  const auto number = [&](const char* name, auto* target) {
    if (!status.ok()) return;
    status = TakeField(&text, name, &value);
    if (status.ok() && !ReadInteger(value, target)) {
      status = Invalid(Format("{} is no number that fits", name));
    }
  };
  const auto real = [&](const char* name, double* target) {
    if (!status.ok()) return;
    status = TakeField(&text, name, &value);
    if (status.ok() && !ReadDouble(value, target))
      status = Invalid(Format("{} is no number", name));
  };
  int overlap = 0;
  number("steps", &spec.steps);
  number("warmups", &spec.warmups);
  real("compute", &spec.compute);
  number("chunks", &spec.chunks);
  number("overlap", &overlap);
  number("communicators", &spec.communicators);
  number("threads", &spec.threads);
  real("limit", &spec.limit);
  if (status.ok() && (overlap < 0 || overlap > 1)) status = Invalid("overlap is 0 or 1");
  spec.overlap = overlap == 1;
  if (status.ok()) status = TakeField(&text, "type", &value);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(const DataType type, ParseDataType(std::string(value)));
  spec.type = type;
  if (status = TakeField(&text, "buckets", &value); !status.ok()) return status;
  if (!text.empty()) return Invalid("there is more after the buckets");
  if (std::count(value.begin(), value.end(), ',') >= static_cast<ptrdiff_t>(kMostBuckets)) {
    return Invalid(Format("more than {} buckets", kMostBuckets));
  }
  for (const std::string_view part : Split(value, ',')) {
    const Result<Bucket> bucket = ReadBucket(part);
    if (!bucket.ok()) {
      return bucket.status().WithContext(Format("bucket {}", spec.buckets.size() + 1));
    }
    spec.buckets.push_back(bucket.value());
  }
  if (status = CheckSpec(spec); !status.ok()) return status;
  return spec;
}

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Result<IterationSpec> PresetSpec(std::string_view name, const PresetOptions& options) {
  const auto* const preset = std::find_if(kPresets.begin(), kPresets.end(), [&](const Preset& one) {
    return FoldName(one.name) == FoldName(name);
  });
  if (preset == kPresets.end()) {
    return Invalid("unknown preset '" + std::string(name) + "'" + Suggestion(name, PresetNames()));
  }
  const int parts = options.parts != 0 ? options.parts : preset->parts;
  const bool ddp = preset->name == std::string_view("ddp");
  RETURN_IF_ERROR(CheckRange(ddp ? "buckets" : "layers", parts, 1, kMostParts));
  uint64_t bytes = options.host ? preset->host_bytes : preset->gpu_bytes;
  if (options.bytes != 0) bytes = options.bytes;
  IterationSpec spec;
  spec.preset = preset->name;
  if (ddp) FillDdp(parts, bytes, &spec);
  if (spec.preset == "fsdp") FillFsdp(parts, bytes, &spec);
  if (spec.preset == "tp") FillTp(parts, bytes, &spec);
  if (spec.preset == "moe") FillMoe(parts, bytes, &spec);
  RETURN_IF_ERROR(CheckSpec(spec));
  return spec;
}

Status CheckSpec(const IterationSpec& spec) {
  if (!IsName(spec.preset)) return Invalid("the preset's name is not one");
  Status status = CheckRange("the number of steps", spec.steps, 1, kMostSteps);
  if (status.ok()) status = CheckRange("the number of warm-up steps", spec.warmups, 0, kMostSteps);
  if (status.ok()) status = CheckRange("compute in seconds", spec.compute, 0, kMostSeconds);
  if (status.ok()) status = CheckRange("the number of chunks", spec.chunks, 1, kMostChunks);
  if (status.ok()) {
    status = CheckRange("the number of communicators", spec.communicators, 1, kMostCommunicators);
  }
  if (status.ok()) status = CheckRange("the number of threads", spec.threads, 1, kMostThreads);
  if (status.ok()) status = CheckRange("the limit in seconds", spec.limit, 1e-3, kLongestLimit);
  if (status.ok() && spec.compute > spec.limit / 2) {
    status =
        Invalid(Format("a step computes for {:g} s; the limit of a wait, {:g} s, must be at least "
                       "twice that",
                       spec.compute, spec.limit));
  }
  if (status.ok() && spec.type > DataType::kI64) status = Invalid("there is no such type");
  if (status.ok()) {
    status = CheckRange("the number of buckets", static_cast<double>(spec.buckets.size()), 1,
                        static_cast<double>(kMostBuckets));
  }
  if (!status.ok()) return status;
  uint64_t total = 0;
  for (size_t i = 0; i < spec.buckets.size(); ++i) {
    status = CheckBucket(spec, spec.buckets[i]);
    if (!status.ok()) return status.WithContext(Format("bucket {}", i + 1));
    total += spec.buckets[i].bytes;
  }
  if (total > kMostBytes) {
    return Invalid("all buckets together have more than " + FormatBytes(kMostBytes));
  }
  return {};
}

std::string CountedText(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const std::string& name : names) {
    const auto known = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& other) { return other.first == name; });
    if (known != kinds.end()) {
      ++known->second;
    } else {
      kinds.emplace_back(name, 1);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : kinds) parts.push_back(Format("{} x ", count) + name);
  return Join(parts, ", ");
}

std::string WorkloadText(const IterationSpec& spec) {
  std::vector<std::string> names;
  for (const Bucket& bucket : spec.buckets) {
    names.push_back(FoldName(OperationName(bucket.operation)) + " " + FormatBytes(bucket.bytes));
  }
  return spec.preset + ": " + CountedText(names) +
         Format(", {:.6g} ms of compute", spec.compute * 1e3) +
         (spec.overlap ? "" : ", no overlap");
}

std::string EncodeSpec(const IterationSpec& spec) {
  std::string text =
      std::string(kFirstWord) + " preset=" + spec.preset +
      Format(" steps={} warmups={} compute={:.17g} chunks={} overlap={}", spec.steps, spec.warmups,
             spec.compute, spec.chunks, spec.overlap ? 1 : 0) +
      Format(" communicators={} threads={} limit={:.17g} type={} buckets=", spec.communicators,
             spec.threads, spec.limit, DataTypeName(spec.type));
  std::vector<std::string> buckets;
  for (const Bucket& bucket : spec.buckets) {
    buckets.push_back(Format("{}:{}:{}:{}:{}:{}:{}:{}:{}", OperationName(bucket.operation),
                             bucket.bytes, bucket.communicator, bucket.after, bucket.before,
                             bucket.config.algorithm, bucket.config.protocol,
                             bucket.config.channels, bucket.config.segment_bytes));
  }
  return text + Join(buckets, ",") + std::string(kLastWord);
}

Result<IterationSpec> DecodeSpec(std::string_view text) {
  if (text.size() > kLongestText) return Invalid("an iteration's text is longer than any can be");
  Result<IterationSpec> spec = Read(text);
  if (!spec.ok()) return spec.status().WithContext("reading an iteration");
  return spec;
}

}  // namespace diapason::measure
