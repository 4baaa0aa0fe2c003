#include "model/model_file.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::model {
namespace {

constexpr char kMagic[] = "diapason-model";
constexpr size_t kMostLines = 4096;

// Numbers of the body, little-endian.
class Writer {
 public:
  template <typename T>
  void Put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void PutBlock(std::string_view block) {
    Put(static_cast<uint64_t>(block.size()));
    bytes_.append(block);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class ModelReader {
 public:
  explicit ModelReader(std::string_view bytes) : bytes_(bytes) {}
  // Zero once something was missing; `fine` is then false.
  template <typename T>
  T Get() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      fine_ = false;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  // The number of following elements; each takes at least `each` bytes.
  size_t GetCount(size_t each) {
    const auto count = Get<uint64_t>();
    if (count > bytes_.size() / each) {
      fine_ = false;
      return 0;
    }
    return static_cast<size_t>(count);
  }
  std::string_view GetBlock() {
    const size_t size = GetCount(1);
    const std::string_view block = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return block;
  }
  // A finite number.
  template <typename T>
  T GetFinite() {
    const T value = Get<T>();
    if (!std::isfinite(value)) fine_ = false;
    return value;
  }
  bool fine() const { return fine_; }
  bool AtEnd() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool fine_ = true;
};

void PutFamily(const ConfigFamily& family, Writer* out) {
  out->Put(static_cast<int32_t>(family.algorithm));
  out->Put(static_cast<int32_t>(family.protocol));
  out->Put(family.segment_bytes);
  out->Put(static_cast<uint8_t>(family.channels ? 1 : 0));
}

ConfigFamily GetFamily(ModelReader* in) {
  ConfigFamily family;
  family.algorithm = in->Get<int32_t>();
  family.protocol = in->Get<int32_t>();
  family.segment_bytes = in->Get<int64_t>();
  family.channels = in->Get<uint8_t>() != 0;
  return family;
}

void PutScene(const SceneTable& scene, Writer* out) {
  out->Put(static_cast<uint8_t>(scene.place.collective));
  out->Put(static_cast<int32_t>(scene.place.nodes));
  out->Put(static_cast<int32_t>(scene.place.ranks));
  out->Put(static_cast<int32_t>(scene.top));
  out->Put(scene.bend);
  out->Put(scene.time_bend);
  for (const size_t end : {0, 1}) {
    out->Put(scene.ends.gain[end]);
    out->Put(scene.ends.time[end]);
  }
  out->Put(static_cast<uint8_t>(scene.contrast ? 1 : 0));
  out->Put(static_cast<uint64_t>(scene.sizes.size()));
  for (size_t i = 0; i < scene.sizes.size(); ++i) {
    const auto& library_default = scene.library_default[i];
    out->Put(scene.sizes[i]);
    out->Put(static_cast<uint8_t>(library_default.has_value() ? 1 : 0));
    out->Put(library_default.has_value() ? library_default->log_seconds : 0.0);
    out->Put(library_default.has_value() ? library_default->doubt : 0.0);
  }
  out->Put(static_cast<uint64_t>(scene.families.size()));
  for (const SceneTable::FamilyTable& table : scene.families) {
    PutFamily(table.family, out);
    out->Put(static_cast<int32_t>(table.lowest));
    out->Put(static_cast<int32_t>(table.highest));
    out->Put(static_cast<uint64_t>(table.values.size()));
    for (const SceneTable::Value& value : table.values) {
      out->Put(value.log_seconds);
      out->Put(value.doubt);
      out->Put(static_cast<uint8_t>(value.measured ? 1 : 0));
    }
  }
}

constexpr int kMostChannels = 1024;

bool FamilyFits(const SceneTable& scene, const SceneTable::FamilyTable& table, bool filled) {
  const bool range = table.lowest >= 0 && table.lowest <= table.highest &&
                     (table.highest <= scene.top || !table.family.channels) &&
                     (table.lowest > 0) == (table.highest > 0);
  const size_t wanted = filled ? scene.sizes.size() * scene.Width(table.family) : 0;
  return range && table.values.size() == wanted;
}

bool GetScene(ModelReader* in, bool filled, SceneTable* scene) {
  const auto collective = in->Get<uint8_t>();
  if (collective >= kCollectiveCount) return false;
  scene->place.collective = static_cast<Collective>(collective);
  scene->place.nodes = in->Get<int32_t>();
  scene->place.ranks = in->Get<int32_t>();
  scene->top = in->Get<int32_t>();
  scene->bend = in->GetFinite<double>();
  scene->time_bend = in->GetFinite<double>();
  for (const size_t end : {0, 1}) {
    scene->ends.gain[end] = in->GetFinite<double>();
    scene->ends.time[end] = in->GetFinite<double>();
    if (!(scene->ends.gain[end] >= 0) || !(scene->ends.time[end] >= 0)) return false;
  }
  scene->contrast = in->Get<uint8_t>() != 0;
  if (scene->place.nodes < 1 || scene->place.ranks < 1 || scene->top < 1 ||
      scene->top > kMostChannels || !(scene->bend >= 0) || !(scene->time_bend >= 0)) {
    return false;
  }
  const size_t sizes = in->GetCount(25);
  for (size_t i = 0; i < sizes; ++i) {
    const auto bytes = in->Get<uint64_t>();
    if (i > 0 && bytes <= scene->sizes.back()) return false;
    scene->sizes.push_back(bytes);
    const bool known = in->Get<uint8_t>() != 0;
    Estimate estimate;
    estimate.log_seconds = in->GetFinite<double>();
    estimate.doubt = in->GetFinite<double>();
    if (!(estimate.doubt >= 0)) return false;
    scene->library_default.push_back(known ? std::optional(estimate) : std::nullopt);
  }
  const size_t families = in->GetCount(33);
  for (size_t i = 0; i < families && in->fine(); ++i) {
    SceneTable::FamilyTable table;
    table.family = GetFamily(in);
    table.lowest = in->Get<int32_t>();
    table.highest = in->Get<int32_t>();
    table.values.resize(in->GetCount(9));
    for (SceneTable::Value& value : table.values) {
      value.log_seconds = in->GetFinite<float>();
      value.doubt = in->GetFinite<float>();
      value.measured = in->Get<uint8_t>() != 0;
      if (!(value.doubt >= 0)) return false;
    }
    if (!FamilyFits(*scene, table, filled)) return false;
    scene->families.push_back(std::move(table));
  }
  return in->fine() && !scene->sizes.empty();
}

// The readable part: "name value" lines up to an empty one.
struct Lines {
  std::vector<std::pair<std::string, std::string>> all;
  std::string Of(const std::string& name) const {
    for (const auto& [key, value] : all) {
      if (key == name) return value;
    }
    return "";
  }
};

bool TakeLines(std::string_view* bytes, Lines* lines) {
  while (lines->all.size() < kMostLines) {
    const size_t end = bytes->find('\n');
    if (end == std::string_view::npos) return false;
    const std::string_view line = bytes->substr(0, end);
    bytes->remove_prefix(end + 1);
    if (line.empty()) return true;
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return false;
    lines->all.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return false;
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

uint64_t NumberOf(const Lines& lines, const std::string& name) {
  uint64_t value = 0;
  return ParseUnsigned(lines.Of(name), &value) ? value : 0;
}

// Checks the first line and removes it.
Status CheckFirstLine(std::string_view* bytes) {
  if (!bytes->starts_with(kMagic)) return Invalid("this is no model of diapason");
  const size_t end = bytes->find('\n');
  if (end == std::string_view::npos || end > 200) return Invalid("the model is cut short");
  const std::vector<std::string_view> words = Split(bytes->substr(0, end), ' ');
  uint64_t version = 0;
  if (words.size() != 3 || words[0] != kMagic || !ParseUnsigned(words[1], &version)) {
    return Invalid("this is no model of diapason");
  }
  if (version != static_cast<uint64_t>(ModelFile::kVersion)) {
    return Invalid(Format("the model has format {}, this program reads {}: train it again", version,
                          ModelFile::kVersion));
  }
  bytes->remove_prefix(end + 1);
  const std::string sum = Format("fnv1a64:{:016x}", Fnv1a64(*bytes));
  if (words[2] != sum) {
    return Invalid("the model was changed or cut short: its checksum does not fit");
  }
  return {};
}

}  // namespace

std::string ModelFile::Write(const Model& model) {
  const Predictor& predictor = model.predictor;
  std::string text;
  const auto line = [&](const std::string& name, const std::string& value) {
    text += name + " " + OneLine(value) + "\n";
  };
  line("objective", ObjectiveName(predictor.objective_));
  line("library", std::string(LibraryName(predictor.library_)));
  line("data", Format("fnv1a64:{:016x}", model.info.fingerprint));
  line("origin", model.info.simulated ? "simulated" : "measured");
  if (!model.info.machine.empty()) line("machine", model.info.machine);
  line("samples", std::to_string(model.info.samples));
  line("cells", std::to_string(model.info.cells));
  line("seed", std::to_string(model.info.seed));
  for (const std::string& name : predictor.features_.names()) line("feature", name);
  for (const auto& [name, value] : model.info.figures) line("figure", name + " " + value);
  text += "\n";
  Writer body;
  body.Put(predictor.offset_);
  body.Put(predictor.tree_error_);
  body.Put(static_cast<uint64_t>(predictor.forests_.size()));
  for (const Forest& forest : predictor.forests_) body.PutBlock(forest.Bytes());
  body.Put(static_cast<uint64_t>(predictor.scenes_.size()));
  for (const SceneTable& scene : predictor.scenes_) PutScene(scene, &body);
  text += body.bytes();
  return Format("{} {} fnv1a64:{:016x}\n", kMagic, kVersion, Fnv1a64(text)) + text;
}

Result<Model> ModelFile::Read(std::string_view bytes) {
  RETURN_IF_ERROR(CheckFirstLine(&bytes));
  const Status broken = Invalid("the model makes no sense, although its checksum fits");
  Lines lines;
  if (!TakeLines(&bytes, &lines)) return broken;
  Model model;
  Predictor& predictor = model.predictor;
  ASSIGN_OR_RETURN(const Objective objective, ParseObjective(lines.Of("objective")));
  predictor.objective_ = objective;
  ASSIGN_OR_RETURN(const Library library, ParseLibrary(lines.Of("library")));
  predictor.library_ = library;
  std::vector<std::string> names;
  for (const auto& [key, value] : lines.all) {
    if (key == "feature") names.push_back(value);
    if (key != "figure") continue;
    const size_t blank = value.find(' ');
    if (blank == std::string::npos) return broken;
    model.info.figures.emplace_back(value.substr(0, blank), value.substr(blank + 1));
  }
  ASSIGN_OR_RETURN(predictor.features_, Features::Named(predictor.library_, names));
  model.info.machine = lines.Of("machine");
  model.info.simulated = lines.Of("origin") == "simulated";
  model.info.samples = NumberOf(lines, "samples");
  model.info.cells = NumberOf(lines, "cells");
  model.info.seed = static_cast<uint32_t>(NumberOf(lines, "seed"));
  const std::string data = lines.Of("data");
  model.info.fingerprint =
      data.starts_with("fnv1a64:") ? std::strtoull(data.c_str() + 8, nullptr, 16) : 0;

  ModelReader body(bytes);
  predictor.offset_ = body.GetFinite<double>();
  predictor.tree_error_ = body.GetFinite<double>();
  const size_t forests = body.GetCount(8);
  for (size_t i = 0; i < forests && body.fine(); ++i) {
    ASSIGN_OR_RETURN(Forest forest, Forest::FromBytes(body.GetBlock(), names.size()));
    predictor.forests_.push_back(std::move(forest));
  }
  const size_t scenes = body.GetCount(33);
  for (size_t i = 0; i < scenes && body.fine(); ++i) {
    SceneTable scene;
    if (!GetScene(&body, predictor.objective_ == Objective::kTime, &scene)) return broken;
    predictor.scenes_.push_back(std::move(scene));
  }
  if (!body.fine() || !body.AtEnd() || predictor.scenes_.empty()) return broken;
  if (predictor.objective_ == Objective::kTime) predictor.MakeTransfer();
  return model;
}

Status ModelFile::Save(const Model& model, const std::string& path) {
  return WriteFileAtomically(path, Write(model));
}

Result<Model> ModelFile::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kLargest));
  Result<Model> model = Read(bytes);
  if (!model.ok()) return Invalid(path + ": " + model.status().message());
  return model;
}

}  // namespace diapason::model
