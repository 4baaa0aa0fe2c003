// The library's version, plugins, environment and machine.
#include <algorithm>

#include "base/secrets.h"
#include "base/text.h"
#include "logs/collect.h"
#include "logs/cursor.h"

namespace diapason::logs {
namespace {

void Count(LineCount* tally, const Spot& spot, std::string_view line) {
  if (tally->count++ == 0) tally->first = MakePlace(spot, line);
}

// Adds a name to a table that records where each was first seen.
uint32_t Note(Names* names, std::vector<SourceLine>* places, std::string_view name,
              const Spot& spot, std::string_view line) {
  const uint32_t id = names->Id(name);
  if (id != kNoName && id >= places->size()) places->push_back(MakePlace(spot, line));
  return id;
}

}  // namespace

bool Collector::Version(std::string_view line, std::string_view message, uint32_t process) {
  Cursor cursor(message);
  std::string name;
  if (cursor.Skip("NCCL version ")) {
    name = "NCCL " + std::string(cursor.Word().substr(0, 60));
  } else if (cursor.Skip("RCCL version")) {
    cursor.SkipTo(":");
    name = "RCCL " + std::string(cursor.Word().substr(0, 60));
    if (name.ends_with("-Unknown")) name.resize(name.size() - 8);
  }
  if (!name.empty()) {
    const uint32_t id = Note(&facts_->libraries, &facts_->library_places, name, spot_, line);
    if (process != UINT32_MAX) facts_->processes[process].library = id;
    return true;
  }
  int64_t number = 0;
  if (cursor.Skip("cudaDriverVersion ") && cursor.Number(&number) && number > 0) {
    name = Format("CUDA driver {}.{}", number / 1000, number % 1000 / 10);
  } else if (cursor.Skip("HIP version") && cursor.SkipTo(":")) {
    name = "HIP " + std::string(cursor.Word().substr(0, 60));
  } else if (cursor.Skip("ROCm version") && cursor.SkipTo(":")) {
    name = "ROCm " + std::string(cursor.Word().substr(0, 60));
  } else if (cursor.Skip("ROCr version ")) {
    name = "ROCr " + std::string(cursor.Word().substr(0, 60));
  }
  if (name.empty()) return false;
  Note(&facts_->drivers, &facts_->driver_places, name, spot_, line);
  return true;
}

bool Collector::Plugin(std::string_view line, std::string_view message) {
  // "NET/Plugin: Loaded net plugin X (v11)", "TUNER/Plugin: Using X (v5)", "PROFILER/Plugin: ..."
  const size_t slash = message.substr(0, 18).find("/Plugin");
  if (slash == std::string_view::npos) return false;
  std::string part = ToLower(message.substr(0, slash));
  Cursor cursor(message.substr(slash + 7));
  cursor.Skip(" ");
  if (!cursor.Skip(":")) return false;
  cursor.Blanks();
  if (cursor.Skip("Loaded ") || cursor.Skip("Using ")) {
    std::string_view what = cursor.rest();
    if (what.find("internal") != std::string_view::npos) return true;
    if (what.starts_with("collnet ")) {
      part = "collnet";
      what.remove_prefix(8);
    }
    for (const std::string_view word : {"net plugin ", "tuner plugin ", "plugin "}) {
      if (what.starts_with(word)) what.remove_prefix(word.size());
    }
    facts_->plugins.Id(part + ": " + std::string(what.substr(0, 120)));
    return true;
  }
  if (cursor.Skip("Could not find:")) {
    const std::string_view file = cursor.Word();
    std::string name(file.substr(0, 120));
    while (!name.empty() && (name.back() == '.' || name.back() == ',')) name.pop_back();
    Note(&facts_->missing_plugins, &facts_->missing_plugin_places, ToLower(part) + " " + name,
         spot_, line);
    return true;
  }
  // 2.18 to 2.22: "Plugin load returned 2 : libX.so: cannot open ... : when loading libX.so"
  if (cursor.Skip("Plugin load returned ") || cursor.Skip("Most recent plugin load returned ")) {
    std::string name;
    if (cursor.SkipTo("when loading ")) name = std::string(cursor.Word().substr(0, 120));
    Note(&facts_->missing_plugins, &facts_->missing_plugin_places, part + " " + name, spot_, line);
    return true;
  }
  return true;
}

bool Collector::Environment(std::string_view line, std::string_view message, uint32_t process) {
  size_t length = 0;
  while (length < message.size() && length < 80 &&
         ((message[length] >= 'A' && message[length] <= 'Z') || message[length] == '_' ||
          (message[length] >= '0' && message[length] <= '9'))) {
    ++length;
  }
  if (length < 5) return false;
  Cursor cursor(message.substr(length));
  if (!cursor.Skip(" set by environment to ")) return false;
  std::string_view value = Trim(cursor.rest());
  // The sentence about a number ends in a full stop, in some versions that about a word too.
  if (value.size() > 1 && value.ends_with('.') && !value.ends_with("..")) value.remove_suffix(1);
  const std::string name(message.substr(0, length));
  const std::string shown = MaskSecrets(name, value);
  const auto found = variables_.find(name);
  uint32_t index = 0;
  if (found != variables_.end()) {
    index = found->second;
  } else {
    if (facts_->variables.size() >= kMostVariables) return true;
    index = static_cast<uint32_t>(facts_->variables.size());
    facts_->variables.emplace_back();
    facts_->variables.back().name = name;
    variables_.emplace(name, index);
  }
  Variable& variable = facts_->variables[index];
  facts_->processes[process].environment = true;
  const uint32_t id = Note(&variable.values, &variable.places, shown, spot_, line);
  if (id == kNoName) return true;
  if (variable.chosen.size() <= process) variable.chosen.resize(process + 1);
  variable.chosen[process] = static_cast<uint8_t>(id + 1);
  return true;
}

bool Collector::NetworkLine(std::string_view line, std::string_view message, uint32_t process) {
  Network& network = facts_->network;
  Cursor cursor(message);
  if (cursor.Skip("Using network ")) {
    facts_->processes[process].network = facts_->networks.Id(cursor.Word());
    return true;
  }
  if (cursor.Skip("NET/IB")) {
    cursor.Skip(" ");
    cursor.Skip(":");
    cursor.Skip(" ");
    if (cursor.Skip("No device found")) {
      ++network.no_ib;
      return true;
    }
    if (cursor.Skip("Using ")) {
      // "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
      size_t devices = 0;
      for (;;) {
        std::string_view word = cursor.Word();
        if (word.empty() || word == "OOB" || word[0] != '[') break;
        const size_t close = word.find(']');
        if (close == std::string_view::npos || word.substr(0, 3) == "[RO") break;
        word.remove_prefix(close + 1);
        if (word.empty()) break;
        network.ib.Id(word);
        if (network.ib_place.line == 0) network.ib_place = MakePlace(spot_, line);
        if (++devices > 64) break;
      }
      network.ib_devices = std::max(network.ib_devices, devices);
      return true;
    }
  } else if (cursor.Skip("Bootstrap")) {
    // "Bootstrap : Using eth0:10.0.0.1<0>"
    if (cursor.SkipTo(": Using ") || cursor.SkipTo(":Using ")) {
      std::string_view word = cursor.Word();
      if (word.starts_with('[')) word.remove_prefix(std::min(word.find(']') + 1, word.size()));
      network.sockets.Id(word.substr(0, word.find('<')));
      if (network.socket_place.line == 0) network.socket_place = MakePlace(spot_, line);
      return true;
    }
  } else if (cursor.Skip("NET/Socket")) {
    if (cursor.SkipTo("Using ")) {
      for (;;) {
        std::string_view word = cursor.Word();
        if (word.empty() || word[0] != '[') break;
        const size_t close = word.find(']');
        if (close == std::string_view::npos) break;
        word.remove_prefix(close + 1);
        network.sockets.Id(word.substr(0, word.find('<')));
        if (network.socket_place.line == 0) network.socket_place = MakePlace(spot_, line);
      }
      return true;
    }
  }
  if (message.find("GPU Direct RDMA ") != std::string_view::npos) {
    const bool on = message.find("Enabled") != std::string_view::npos;
    if (message.find(" for HCA ") != std::string_view::npos) {
      if (!on) Count(&facts_->gdr_missing, spot_, line);
    } else {
      Count(on ? &facts_->gdr_on : &facts_->gdr_off, spot_, line);
    }
    return true;
  }
  if (message.starts_with("GDRDMA not enabled")) {
    Count(&facts_->gdr_missing, spot_, line);
    return true;
  }
  return false;
}

bool Collector::Device(std::string_view line, std::string_view message, uint32_t process) {
  Cursor cursor(message);
  if (cursor.Skip("comm 0x")) {
    // "comm 0x55 rank 1 nRanks 2 nNodes 1 localRanks 2 localRank 1 MNNVL 0"
    uint64_t pointer = 0;
    int64_t ranks = 0;
    int64_t nodes = 0;
    if (!cursor.Hex(&pointer) || !cursor.SkipTo("nRanks ") || !cursor.Number(&ranks)) return false;
    if (!cursor.SkipTo("nNodes ") || !cursor.Number(&nodes)) return false;
    const uint32_t index = MemberOf(process, pointer, ranks);
    if (index != UINT32_MAX) {
      facts_->communicators[facts_->members[index].communicator].nodes = nodes;
    }
    return true;
  }
  if (cursor.Skip("NVLS multicast support is ")) {
    Count(cursor.Skip("available") ? &facts_->nvls_on : &facts_->nvls_off, spot_, line);
    return true;
  }
  if (cursor.Skip("[Proxy Service] Device ")) {
    int64_t device = 0;
    int64_t core = 0;
    if (!cursor.Number(&device) || !cursor.Skip(" CPU core ") || !cursor.Number(&core)) {
      return false;
    }
    auto& cores = facts_->proxy_cores;
    const std::pair<uint32_t, int64_t> key(facts_->processes[process].host, core);
    if (cores.size() >= 4096 && cores.find(key) == cores.end()) return true;
    std::vector<std::pair<int64_t, SourceLine>>& devices = cores[key];
    const bool known = std::any_of(devices.begin(), devices.end(),
                                   [&](const auto& entry) { return entry.first == device; });
    if (!known && devices.size() < 8) devices.emplace_back(device, MakePlace(spot_, line));
    return true;
  }
  if (message.find("Affinity for GPU ") != std::string_view::npos) {
    // An empty CPU list for the GPU: the machine does not report its location.
    if (message.find("is empty") != std::string_view::npos &&
        message.find("(GPU affinity =  ;") == std::string_view::npos) {
      Count(&facts_->no_affinity, spot_, line);
    }
    return true;
  }
  if (message.starts_with("Dmabuf feature disabled")) {
    Count(&facts_->dmabuf_off, spot_, line);
    return true;
  }
  cursor.Blanks();
  if (cursor.Skip("+ NVL[") || cursor.Skip("+ XGMI[")) {
    Count(&facts_->nvlink, spot_, line);
    return true;
  }
  const size_t gfx = message.find("gfx");
  if (gfx != std::string_view::npos && gfx + 6 <= message.size() && message[gfx + 3] >= '0' &&
      message[gfx + 3] <= '9') {
    size_t end = gfx + 3;
    while (end < message.size() && end < gfx + 9 &&
           ((message[end] >= '0' && message[end] <= '9') ||
            (message[end] >= 'a' && message[end] <= 'f'))) {
      ++end;
    }
    facts_->architectures.Id(message.substr(gfx, end - gfx));
  }
  return false;
}

void Collector::Hdp(std::string_view line, std::string_view message) {
  // "Ring 00 : 0 -> 1 HDP 0x7f10", or "HDP (nil)".
  const size_t hdp = message.find(" HDP ");
  if (hdp == std::string_view::npos) return;
  const bool there = message.substr(hdp + 5).starts_with("0x");
  Count(there ? &facts_->hdp : &facts_->hdp_missing, spot_, line);
}

}  // namespace diapason::logs
