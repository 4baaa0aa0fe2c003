#include "job/option_shapes.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::job {
namespace {

bool Lists(std::string_view list, std::string_view name) {
  for (const std::string_view one : Split(list, ' ')) {
    if (one == name) return true;
  }
  return false;
}

bool IsOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

size_t ValuesOf(const OptionShape& shape, std::string_view name, bool long_name) {
  if (Lists(shape.two, name)) return 2;
  if (Lists(shape.one, name)) return 1;
  return shape.others_take_one && long_name && !Lists(shape.flags, name) ? 1 : 0;
}

// "-n4", "-lu", "-n 4": the letters of one word. Returns how many further words are values.
size_t ReadLetters(const OptionShape& shape, const std::string& word, size_t at,
                   std::vector<ReadOption>* options) {
  for (size_t i = 1; i < word.size(); ++i) {
    ReadOption option{std::string(1, word[i]), {}, at, false};
    const bool valued = shape.letters.find(word[i]) != std::string_view::npos;
    if (valued && i + 1 < word.size()) {
      option.values.push_back(word.substr(i + 1));
      option.joined = true;
    }
    const bool takes_next = valued && option.values.empty();
    options->push_back(std::move(option));
    if (valued) return takes_next ? 1 : 0;
  }
  return 0;
}

struct Prefix {
  std::string_view name;
  OptionShape shape;
};

}  // namespace

ReadWords ReadOptionWords(const std::vector<std::string>& words, size_t begin,
                          const OptionShape& shape) {
  ReadWords read;
  size_t at = begin;
  int arguments = shape.arguments;
  while (at < words.size()) {
    const std::string& word = words[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (!IsOption(word)) {
      if (arguments == 0) break;
      --arguments;
      read.arguments.push_back(at++);
      continue;
    }
    // Behind the first argument there are no more options.
    if (!read.arguments.empty()) break;
    size_t values = 0;
    const bool long_name = word.starts_with("--");
    if (!long_name && shape.clustered) {
      values = ReadLetters(shape, word, at, &read.options);
    } else {
      const size_t dashes = long_name ? 2 : 1;
      const size_t equals = word.find('=');
      ReadOption option{word.substr(dashes, equals == std::string::npos ? equals : equals - dashes),
                        {},
                        at,
                        equals != std::string::npos};
      if (option.joined) option.values.push_back(word.substr(equals + 1));
      values = option.joined ? 0 : ValuesOf(shape, option.name, long_name);
      read.options.push_back(std::move(option));
    }
    ++at;
    for (; values > 0 && at < words.size(); --values)
      read.options.back().values.push_back(words[at++]);
  }
  for (; arguments > 0 && at < words.size(); --arguments) read.arguments.push_back(at++);
  read.end = at;
  return read;
}

const OptionShape* PrefixShape(std::string_view name) {
  // clang-format off
  static const Prefix kPrefixes[] = {
      {"nice", {.one = "adjustment", .letters = "n", .clustered = true}},
      {"ionice", {.one = "class classdata", .letters = "cn", .clustered = true}},
      {"timeout", {.one = "signal kill-after", .letters = "sk", .clustered = true, .arguments = 1}},
      {"numactl", {.flags = "all localalloc balancing hardware show touch shared", .letters = "iNCmpw",
                   .others_take_one = true, .clustered = true}},
      {"taskset", {.one = "", .clustered = true, .arguments = 1}},
      {"chrt", {.one = "sched-runtime sched-period sched-deadline", .letters = "TPD",
                .clustered = true, .arguments = 1}},
      {"nohup", {.one = ""}},
      {"setsid", {.one = "", .clustered = true}},
      {"stdbuf", {.one = "input output error", .letters = "ioe", .clustered = true}},
      {"time", {.one = "format output", .letters = "fo", .clustered = true}},
      {"unbuffer", {.one = ""}},
      {"strace", {.one = "trace output", .letters = "aeEIoOpPsSuUX", .clustered = true}},
      {"ltrace", {.one = "output", .letters = "aADeFlnopsuwxX", .clustered = true}},
  };
  // clang-format on
  for (const Prefix& one : kPrefixes) {
    if (one.name == name) return &one.shape;
  }
  return nullptr;
}

const OptionShape& OpenMpiShape() {
  static const OptionShape kShape{
      .one =
          "n np c x H host hosts hostfile machinefile default-hostfile map-by rank-by bind-to N "
          "npernode npersocket ppr wdir wd path prefix rankfile rf slot-list output-filename "
          "stdin timeout app am tune cpu-set cpu-list cpus-per-proc cpus-per-rank max-restarts "
          "ompi-server report-uri report-pid report-events xterm personality tmpdir preload-files "
          "preload-files-dest-dir display output output-directory pset add-host add-hostfile dvm "
          "dvm-uri runtime-options stream-buffering mca-file max-vm-size num-procs "
          "server-wait-time "
          "debugger prtemca-file with-ft memory-bind",
      .two = "mca gmca omca pmca prtemca pmixmca gpmixmca gprtemca"};
  return kShape;
}

const OptionShape& HydraShape() {
  static const OptionShape kShape{
      .one =
          "n np ppn perhost f hostfile machinefile machine hosts host wdir path launcher bootstrap "
          "launcher-exec bootstrap-exec iface rmk bind-to map-by membind genvlist envlist "
          "configfile outfile-pattern errfile-pattern usize topolib demux order-nodes arch "
          "nameserver "
          "grr rr-nodes gpath gwdir gumask umask tune trace rank-order processor-topology "
          "pmi-port timeout hostos port",
      .two = "genv env"};
  return kShape;
}

const OptionShape& SrunShape() {
  static const OptionShape kShape{
      .one = "",
      .flags =
          "exclusive label verbose overcommit overlap kill-on-bad-exit unbuffered pty "
          "preserve-env quiet no-kill share oversubscribe hold immediate multi-prog interactive "
          "spread-job use-min-nodes contiguous disable-status propagate reboot exact "
          "quit-on-interrupt test-only send-libs bcast compress help usage version no-allocate x11 "
          "no-shell no-bell get-user-env container-mount-home no-container-mount-home "
          "container-remap-root no-container-remap-root container-writable container-readonly "
          "container-entrypoint no-container-entrypoint stepmgr",
      .letters = "ABcCdDeFGijJLmMnNopqrStTwWx",
      .others_take_one = true,
      .clustered = true};
  return kShape;
}

const OptionShape& TorchrunShape() {
  static const OptionShape kShape{.one = "r t",
                                  .flags =
                                      "standalone module no-python no_python run-path run_path "
                                      "use-env use_env help",
                                  .others_take_one = true};
  return kShape;
}

const OptionShape& DeepspeedShape() {
  static const OptionShape kShape{.one = "H i e",
                                  .flags =
                                      "module no_python no_local_rank no_ssh_check no_ssh "
                                      "force_multi save_pid bind_cores_to_rank help",
                                  .others_take_one = true};
  return kShape;
}

const OptionShape& AccelerateShape() {
  static const OptionShape kShape{
      .one = "",
      .flags =
          "cpu multi_gpu tpu ipex use_xpu use_mps_device use_deepspeed use_fsdp "
          "use_parallelism_config use_megatron_lm module no_python same_network debug quiet q m "
          "enable_cpu_affinity tpu_use_cluster tpu_use_sudo dynamo_use_fullgraph "
          "dynamo_use_dynamic dynamo_use_regional_compilation help",
      .others_take_one = true};
  return kShape;
}

const OptionShape& DiapasonLaunchShape() {
  static const OptionShape kShape{
      .one = "ranks log-dir port env grace timeout", .letters = "n", .clustered = true};
  return kShape;
}

const OptionShape& ContainerShape() {
  // clang-format off
  static const OptionShape kShape{
      .one = "",
      .flags = "rm interactive tty detach privileged init read-only no-healthcheck publish-all "
               "sig-proxy tls-verify quiet env-host no-hosts http-proxy replace systemd rmi",
      .letters = "aceflhmpuvw",
      .others_take_one = true,
      .clustered = true};
  // clang-format on
  return kShape;
}

}  // namespace diapason::job
