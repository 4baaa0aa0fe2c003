#include "comm/selection.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "base/own_files.h"
#include "base/text.h"
#include "base/version.h"
#include "comm/backend_facts.h"
#include "rendezvous/frame.h"

namespace diapason::comm {
namespace {

Result<Backend*> OpenModule(const BackendFacts& facts) {
  std::string why_not;
  const std::string file = Format("libdiapason-comm-{}.so", facts.name);
  const std::string path = FindBesideUs(file, &why_not);
  if (path.empty()) {
    if (!why_not.empty()) return Unavailable(why_not);
    return Unavailable(file + " is not there: diapason was built without " + facts.package);
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Unavailable(why != nullptr ? why : path + " cannot be opened");
  }
  const auto entry = reinterpret_cast<ModuleEntry>(dlsym(handle, kModuleEntry));
  Backend* backend = entry != nullptr ? entry(kVersion) : nullptr;
  if (backend == nullptr) return Unavailable(path + " belongs to another version of diapason");
  return backend;
}

std::string Titled(const BackendInfo& info) {
  std::string text = info.name;
  if (!info.version.empty()) text += " " + info.version;
  if (!info.devices.empty()) text += ", " + info.devices;
  return text;
}

}  // namespace

Result<Backend*> FindBackend(const std::string& name) {
  const BackendFacts& facts = FactsOfBackend(name);
  if (*facts.name == '\0') {
    return Invalid("unknown backend '" + name + "'" + Suggestion(name, BackendNames()));
  }
  if (facts.built_in != nullptr) return facts.built_in();
  // A module stays open: the libraries behind it do not survive being closed.
  static std::mutex mutex;
  static auto* const opened = new std::map<std::string, Backend*>;
  const std::lock_guard lock(mutex);
  if (const auto found = opened->find(name); found != opened->end()) return found->second;
  const Result<Backend*> backend = OpenModule(facts);
  if (backend.ok()) (*opened)[name] = backend.value();
  return backend;
}

Findings LookAround(const std::string& wanted, const RankInfo& place) {
  Findings findings;
  findings.wanted = wanted;
  std::vector<std::string> names{wanted};
  if (wanted == "auto") {
    names = BackendNames();
    std::erase_if(names, [](const auto& name) { return FactsOfBackend(name).simulated; });
  }
  for (const std::string& name : names) {
    const Result<Backend*> backend = FindBackend(name);
    if (backend.ok()) {
      findings.backends.push_back(backend.value()->Look(place));
      findings.backends.back().name = name;
    } else {
      findings.backends.push_back({name, false, "", "", backend.status().message()});
    }
    // The remaining ones would not be chosen, and examining them costs time, most of all GPU
    // libraries.
    if (findings.backends.back().usable && place.size == 1) break;
  }
  return findings;
}

std::string Findings::Encode() const {
  rendezvous::FrameWriter writer(rendezvous::FrameKind::kSet);
  writer.Text(host).Text(wanted).Number(backends.size());
  for (const BackendInfo& info : backends) {
    writer.Text(info.name).Number(info.usable ? 1 : 0);
    writer.Text(info.version).Text(info.devices).Text(info.reason);
  }
  return writer.Take().substr(5);
}

Result<Findings> Findings::Decode(const std::string& text) {
  rendezvous::FrameReader reader(text);
  Findings findings;
  findings.host = reader.Text();
  findings.wanted = reader.Text();
  const uint64_t count = reader.Number();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    BackendInfo info;
    info.name = reader.Text();
    info.usable = reader.Number() != 0;
    info.version = reader.Text();
    info.devices = reader.Text();
    info.reason = reader.Text();
    findings.backends.push_back(std::move(info));
  }
  if (!reader.ok()) return Internal("another rank's findings cannot be read");
  return findings;
}

Result<SelectedBackend> Choose(const std::vector<Findings>& ranks) {
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].wanted != ranks[0].wanted) {
      return Invalid(Format("rank {} asks for the backend {} and rank 0 for {}", rank,
                            ranks[rank].wanted, ranks[0].wanted));
    }
  }
  std::vector<std::string> refusals;
  for (size_t i = 0; i < ranks[0].backends.size(); ++i) {
    const BackendInfo& info = ranks[0].backends[i];
    std::string refusal;
    for (size_t rank = 0; rank < ranks.size() && refusal.empty(); ++rank) {
      if (ranks[rank].backends.size() <= i || ranks[rank].backends[i].name != info.name) {
        return Internal(Format("rank {} has looked at other backends than rank 0", rank));
      }
      const BackendInfo& there = ranks[rank].backends[i];
      if (!there.usable) {
        refusal = there.reason;
        if (rank > 0) refusal = Format("on rank {} ", rank) + refusal;
      } else if (there.version != info.version) {
        refusal = Format("rank {} has version {} and rank 0 {}", rank, there.version, info.version);
      }
    }
    if (refusal.empty()) {
      std::string description = Titled(info);
      for (const std::string& other : refusals) description += "; not " + other;
      return SelectedBackend{info.name, description};
    }
    refusals.push_back(info.name + ": " + refusal);
  }
  if (ranks[0].wanted != "auto") {
    return Unavailable("the backend " + refusals[0] +
                       ". (It was asked for by name, so no other is "
                       "tried; `diapason backends` lists what works.)");
  }
  return Unavailable("no backend works here: " + Join(refusals, "; "));
}

}  // namespace diapason::comm

namespace diapason {

std::vector<BackendInfo> Backends() {
  std::vector<BackendInfo> all;
  for (const std::string& name : comm::BackendNames()) {
    all.push_back(comm::LookAround(name, comm::RankInfo{}).backends[0]);
  }
  return all;
}

}  // namespace diapason
