#include "options.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

namespace attack {

Options ReadOptions(int argc, char** argv) {
  Options o;
  std::map<std::string, std::function<void(const char*)>> known;
  const auto number = [&known](const char* name, auto* field) {
    known[name] = [field](const char* text) {
      *field = static_cast<std::remove_pointer_t<decltype(field)>>(std::strtoll(text, nullptr, 0));
    };
  };
  const auto text = [&known](const char* name, std::string* field) {
    known[name] = [field](const char* value) { *field = value; };
  };
  text("plugin", &o.plugin);
  text("board", &o.board);
  text("broken", &o.broken);
  number("rank", &o.rank);
  number("ranks", &o.ranks);
  number("nodes", &o.nodes);
  number("calls", &o.calls);
  number("seed", &o.seed);
  number("id", &o.id);
  number("version", &o.version);
  number("lag", &o.lag);
  number("pause", &o.pause);
  number("communicators", &o.communicators);
  number("sizes", &o.sizes);
  number("fresh", &o.fresh);
  number("collectives", &o.collectives);
  number("profiler", &o.profiler);
  number("twice", &o.twice);
  number("ahead", &o.ahead);
  number("captured", &o.captured);
  number("selected", &o.selected);
  number("pairs", &o.pairs);
  number("groups", &o.groups);
  number("nonblocking", &o.nonblocking);
  number("late", &o.late);
  number("simulated", &o.simulated);
  number("simulated_then_sent", &o.simulated_then_sent);
  number("sent", &o.sent);
  number("mask_at", &o.mask_at);
  number("mask", &o.mask);
  number("fail_first", &o.fail_first);
  number("fail_count", &o.fail_count);
  number("fail_call", &o.fail_call);
  number("fail_others", &o.fail_others);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const auto found = known.find(argument.substr(0, equals));
    if (equals == std::string::npos || found == known.end()) {
      std::fprintf(stderr, "attack_rank: '%s' is not understood\n", argv[i]);
      std::exit(64);
    }
    found->second(argument.c_str() + equals + 1);
  }
  return o;
}

}  // namespace attack
