#include "doctor/this_machine.h"

#include <cstdlib>

#include "base/environment.h"
#include "base/own_files.h"
#include "base/root_fs.h"
#include "comm/backend.h"
#include "plugin/client/plugin_client.h"

namespace diapason::doctor {

PluginFile FindOwnPlugin() {
  const std::string path = FindBesideUs("libnccl-tuner-diapason.so");
  if (path.empty()) return {};
  PluginFile plugin = LookAtPlugin(RootFs(), path);
  if (!plugin.trouble.empty()) return plugin;
  const Result<std::unique_ptr<client::PluginClient>> client = client::PluginClient::Open(path, 0);
  if (!client.ok()) plugin.trouble = client.status().message();
  const PluginFile profiler = LookAtPlugin(RootFs(), FindBesideUs("libnccl-profiler-diapason.so"));
  const PluginFile env = LookAtPlugin(RootFs(), FindBesideUs("libnccl-env-diapason.so"));
  if (plugin.profiler_apis.empty()) plugin.profiler_apis = profiler.profiler_apis;
  if (plugin.env_apis.empty()) plugin.env_apis = env.env_apis;
  return plugin;
}

CheckInputs GatherThisMachine() {
  CheckInputs facts = GatherFacts(RootFs(), ProcessEnvironment());
  facts.plugin = FindOwnPlugin();
  if (!facts.job.file.empty() && !facts.job.by_name) {
    setenv(host::LibraryFileSetting(facts.job.library), facts.job.file.c_str(), 1);
  }
  for (const BackendInfo& info : Backends()) {
    if (info.usable) facts.usable_backends.push_back(info.name);
  }
  return facts;
}

}  // namespace diapason::doctor
