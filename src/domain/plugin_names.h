#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "domain/vocabulary.h"

namespace diapason {

// The file names under which NCCL and RCCL look for their plugins, by library and version. The
// plugin opens these names and the tool searches for them on the disk. Pure functions. A version of
// 0 (unknown) stands for the newest rules.

// Names for dlopen, in the order in which the library tries them.
using PluginNames = std::vector<std::string>;

// "none" in any case: the library loads no plugin of that kind.
bool NamesNoPlugin(std::string_view value);

// Whether the library looks for a tuner where NCCL_TUNER_PLUGIN is not set: from 2.21 on.
bool SearchesForTuner(int version);

// The names for a value of NCCL_TUNER_PLUGIN; an empty value is the same as none set. Up to 2.20
// the library tries the value alone.
PluginNames TunerPluginNames(Library library, int version, std::string_view value);

// The names for a value of NCCL_PROFILER_PLUGIN; an empty value is the same as none set.
PluginNames ProfilerPluginNames(Library library, int version, std::string_view value);

// For every network plugin that a value of NCCL_NET_PLUGIN names, in order, its names; an empty
// value is the same as none set. Empty if the library loads no network plugin.
std::vector<PluginNames> NetPluginNames(Library library, int version, std::string_view value);

// "STATIC_PLUGIN": the symbols of the program itself. The library compares only as many characters
// as the value has.
bool NamesProgramItself(std::string_view value);

// Whether a value names diapason's own plugin: "diapason", or a file lib...-diapason.so.
bool NamesDiapason(std::string_view value);

}  // namespace diapason
