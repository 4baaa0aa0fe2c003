// ./dev bench decide: what one decision costs, side by side in one run.
//
// Each case answers the same questions (log-uniform sizes, in random order) through the callback of
// tuner API v5; the table is filled again before every question, as the library does, for the empty
// callback too. Rounds of all cases are interleaved, so that drift hits all alike. Instruction
// counts come from valgrind and do not depend on load.
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "base/stats.h"
#include "base/text.h"
#include "learning_case.h"
#include "linear_scan.h"
#include "tuner_v5.h"

namespace diapason::bench {
namespace {

constexpr int kAllReduce = 4;
constexpr int kAlgorithms = 7;
constexpr int kProtocols = 3;
constexpr int kRounds = 301;
constexpr size_t kQuestions = 1024;
constexpr int kPasses = 4;
constexpr const char* kLearning = "learning, settled";

struct Case {
  std::string name;
  void* context = nullptr;
  int (*ask)(void*, int, size_t, int, float**, int, int, int, int*) = nullptr;
  std::vector<double> nanoseconds;  // per question, one value a round
};

// `count` rules that all match one node of eight ranks: adjacent ranges over 1 byte to 4 GiB,
// evenly spread on a log scale, neighbours with different answers.
std::vector<ScanRule> MakeRules(int count) {
  std::vector<ScanRule> rules;
  uint64_t start = 0;
  for (int i = 0; i < count; ++i) {
    const double exponent = 32.0 * (i + 1) / count;
    const uint64_t end = std::max<uint64_t>(start, static_cast<uint64_t>(std::exp2(exponent)));
    rules.push_back({kAllReduce, start, end, i % 2, (i % 4 < 2) ? 0 : 2, 1 + i % 16, 1, 8, -1, -1});
    start = end + 1;
  }
  return rules;
}

std::string PolicyOf(const std::vector<ScanRule>& rules) {
  std::string text;
  for (const ScanRule& rule : rules) {
    text += Format("allreduce,{},{},{},{},{},{},{},-1,-1\n", rule.min_bytes, rule.max_bytes,
                   rule.algorithm == 0 ? "tree" : "ring", rule.protocol == 0 ? "ll" : "simple",
                   rule.channels, rule.nodes, rule.ranks);
  }
  return text;
}

std::vector<size_t> MakeSizes() {
  std::mt19937_64 random(42);
  std::uniform_real_distribution<double> exponent(0, 31);
  std::vector<size_t> sizes;
  for (size_t i = 0; i < kQuestions; ++i) {
    sizes.push_back(static_cast<size_t>(std::exp2(exponent(random))));
  }
  return sizes;
}

const std::vector<float>& FreshTable() {
  static const std::vector<float> table = [] {
    std::vector<float> cells(kAlgorithms * kProtocols, -1.0f);
    for (int a = 0; a < 2; ++a) {
      for (int p = 0; p < kProtocols; ++p) cells[a * kProtocols + p] = 10.0f + a * 3.0f + p;
    }
    return cells;
  }();
  return table;
}

// At a fixed place in a cache line: where the heap happens to put it changes every case by
// nanoseconds.
struct alignas(64) Table {
  float cells[kAlgorithms * kProtocols];
};

// One pass over all questions.
int Pass(const Case& one, const std::vector<size_t>& sizes, Table* table) {
  const float* fresh = FreshTable().data();
  int sum = 0;
  for (const size_t bytes : sizes) {
    std::memcpy(table->cells, fresh, sizeof(table->cells));
    int channels = 0;
    one.ask(one.context, kAllReduce, bytes, 1, reinterpret_cast<float**>(table->cells), kAlgorithms,
            kProtocols, 0, &channels);
    sum += channels;
  }
  return sum;
}

class Bench {
 public:
  explicit Bench(const std::string& library_folder) {
    char pattern[] = "/tmp/diapason_bench_XXXXXX";
    if (::mkdtemp(pattern) == nullptr) Die("cannot create a folder in /tmp");
    folder_ = pattern;
    empty_ = Open(library_folder + "/libbench_empty.so");
    plugin_path_ = library_folder + "/libnccl-tuner-diapason.so";
    plugin_ = Open(plugin_path_);
    for (const char* name : {"DIAPASON_JOURNAL", "DIAPASON_MODE", "DIAPASON_POLICY_INLINE",
                             "DIAPASON_OVERLAP", "NCCL_WORKLOAD_OVERLAP", "DIAPASON_CHAIN"}) {
      unsetenv(name);
    }
  }
  ~Bench() { std::filesystem::remove_all(folder_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void AddEmpty() { cases_.push_back({"empty callback", nullptr, empty_->get_coll_info, {}}); }

  void AddPlugin(int rules) {
    const std::string path = Format("{}/{}.conf", folder_, rules);
    std::ofstream(path) << PolicyOf(MakeRules(rules));
    setenv("DIAPASON_POLICY", path.c_str(), 1);
    std::vector<double> milliseconds;
    size_t bytes = 0;
    void* context = nullptr;
    for (int i = 0; i < 21; ++i) {
      if (context != nullptr) plugin_->finalize(context);
      const size_t before = mallinfo2().uordblks;
      const auto start = std::chrono::steady_clock::now();
      plugin_->init(&context, 1, 8, 1, nullptr, nullptr, nullptr);
      milliseconds.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count());
      bytes = mallinfo2().uordblks - before;
    }
    if (context == nullptr) Die("the plugin stepped aside");
    cases_.push_back({Format("diapason, {} rules", rules), context, plugin_->get_coll_info, {}});
    inits_.push_back(Format("  {:5} rules: {:.2f} ms median of {} (worst {:.2f}), {:.0f} KiB",
                            rules, Median(milliseconds), milliseconds.size(),
                            Quantile(milliseconds, 1.0), static_cast<double>(bytes) / 1024));
  }

  // The same four rules, agreed on by two ranks that learn.
  void AddLearning() {
    void* library = dlopen(plugin_path_.c_str(), RTLD_NOW | RTLD_NOLOAD);
    const std::string policy = folder_ + "/nodes.conf";
    std::vector<ScanRule> rules = MakeRules(4);
    for (ScanRule& rule : rules) rule.nodes = rule.ranks = -1;
    std::ofstream(policy) << PolicyOf(rules);
    void* context = MakeSettledContext(library, plugin_, policy, MakeSizes());
    if (context == nullptr) Die("the plugin does not learn");
    cases_.push_back({kLearning, context, plugin_->get_coll_info, {}});
  }

  void AddScan(int rules) {
    scans_.push_back(std::make_unique<ScanContext>(ScanContext{MakeRules(rules), 1, 8}));
    cases_.push_back({Format("linear scan, {} rules", rules), scans_.back().get(), LinearScan, {}});
  }

  void Measure() {
    const std::vector<size_t> sizes = MakeSizes();
    Table table;
    volatile int sink = 0;
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < cases_.size(); ++i) {
        // Another case first in every round.
        Case& one = cases_[(i + static_cast<size_t>(round)) % cases_.size()];
        sink = Pass(one, sizes, &table);
        const auto start = std::chrono::steady_clock::now();
        for (int pass = 0; pass < kPasses; ++pass) sink = Pass(one, sizes, &table);
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - start;
        one.nanoseconds.push_back(took.count() / static_cast<double>(kPasses * kQuestions));
      }
    }
    (void)sink;
  }

  // For valgrind: runs one case so many times, and nothing else.
  void Repeat(size_t index, int passes) {
    const std::vector<size_t> sizes = MakeSizes();
    Table table;
    volatile int sink = 0;
    for (int pass = 0; pass < passes; ++pass) sink = Pass(cases_.at(index), sizes, &table);
    (void)sink;
  }

  void Report(const std::vector<double>& instructions) const;

  size_t case_count() const { return cases_.size(); }

  [[noreturn]] static void Die(const std::string& why) {
    std::fprintf(stderr, "bench decide: %s\n", why.c_str());
    std::exit(1);
  }

 private:
  static const tuner_v5* Open(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) Die(dlerror());
    void* symbol = dlsym(library, "ncclTunerPlugin_v5");
    if (symbol == nullptr) Die(path + " has no tuner API v5");
    // One process asks for eight ranks; the empty callback's library has nothing to tell.
    if (void* rehearse = dlsym(library, "diapason_rehearse"); rehearse != nullptr) {
      reinterpret_cast<void (*)(int)>(rehearse)(1);
    }
    return static_cast<const tuner_v5*>(symbol);
  }
  const Case& Find(const std::string& name) const {
    for (const Case& one : cases_) {
      if (one.name == name) return one;
    }
    Die("no case " + name);
  }
  // Paired by round: what a case takes beyond the empty callback.
  std::vector<double> Net(const Case& one) const {
    std::vector<double> net;
    for (size_t i = 0; i < one.nanoseconds.size(); ++i) {
      net.push_back(one.nanoseconds[i] - Find("empty callback").nanoseconds[i]);
    }
    return net;
  }

  std::string folder_;
  std::string plugin_path_;
  const tuner_v5* empty_ = nullptr;
  const tuner_v5* plugin_ = nullptr;
  std::vector<Case> cases_;
  std::vector<std::unique_ptr<ScanContext>> scans_;
  std::vector<std::string> inits_;
};

void Bench::Report(const std::vector<double>& instructions) const {
  std::printf("%-24s %10s %24s %12s\n", "case", "ns/call", "net of empty [95 %]", "instructions");
  for (size_t i = 0; i < cases_.size(); ++i) {
    const std::vector<double> net = Net(cases_[i]);
    const Interval interval = MedianInterval95(net);
    std::printf("%-24s %10.1f %10.1f [%5.1f, %5.1f] %12s\n", cases_[i].name.c_str(),
                Median(cases_[i].nanoseconds), Median(net), interval.low, interval.high,
                instructions.empty() ? "-" : Format("{:.0f}", instructions[i]).c_str());
  }
  std::printf("(medians of %d interleaved rounds, %zu questions each)\n\ninit:\n", kRounds,
              kQuestions * kPasses);
  for (const std::string& line : inits_) std::printf("%s\n", line.c_str());

  const double few = Median(Net(Find("diapason, 4 rules")));
  const double many = Median(Net(Find("diapason, 3000 rules")));
  const double gross_ratio = Median(Find("diapason, 3000 rules").nanoseconds) /
                             Median(Find("diapason, 4 rules").nanoseconds);
  const double scan_1000 = Median(Net(Find("linear scan, 1000 rules")));
  const double scan_3000 = Median(Net(Find("linear scan, 3000 rules")));
  const double ours_1000 = Median(Net(Find("diapason, 1000 rules")));
  const auto bar = [](const char* what, double value, const char* unit, bool reached) {
    std::printf("  %-58s %8.2f%s  %s\n", what, value, unit, reached ? "reached" : "NOT reached");
  };
  const double learning = Median(Net(Find(kLearning)));
  std::printf("\nbars:\n");
  bar("4 rules, net of empty: at most 25 ns", few, " ns", few <= 25);
  bar("3000 rules, net of empty: at most 25 ns", many, " ns", many <= 25);
  bar("3000 rules against 4 rules, whole call: at most 1.3 x", gross_ratio, " x",
      gross_ratio <= 1.3);
  bar("3000 rules against 4 rules, net of empty: at most 1.3 x", many / few, " x",
      many / few <= 1.3);
  bar("learning and settled against 4 rules: at most 5 ns more", learning - few, " ns",
      learning - few <= 5);
  bar("linear scan against us, 1000 rules, net: at least 10 x", scan_1000 / ours_1000, " x",
      scan_1000 / ours_1000 >= 10);
  bar("linear scan against us, 3000 rules, net: at least 30 x", scan_3000 / many, " x",
      scan_3000 / many >= 30);
}

void AddCases(Bench* bench) {
  bench->AddEmpty();
  for (const int rules : {4, 1000, 3000}) bench->AddPlugin(rules);
  bench->AddLearning();
  for (const int rules : {4, 100, 1000, 3000}) bench->AddScan(rules);
}

// Instructions a question: the difference between two lengths of the same run under valgrind.
std::vector<double> CountInstructions(const std::string& self, size_t cases) {
  std::vector<double> counts;
  if (std::system("valgrind --version >/dev/null 2>&1") != 0) return counts;
  const auto run = [&](size_t index, int passes) {
    const std::string command = Format(
        "valgrind --tool=callgrind "
        "--callgrind-out-file=/dev/null {} --case {} --passes {} 2>&1 | sed -n "
        "'s/.*Collected : \\([0-9]*\\).*/\\1/p'",
        self, index, passes);
    FILE* pipe = ::popen(command.c_str(), "r");
    double total = 0;
    if (pipe == nullptr || std::fscanf(pipe, "%lf", &total) != 1) total = -1;
    if (pipe != nullptr) ::pclose(pipe);
    return total;
  };
  for (size_t i = 0; i < cases; ++i) {
    const double few = run(i, 1);
    const double more = run(i, 11);
    if (few < 0 || more < 0) return {};
    counts.push_back((more - few) / (10.0 * kQuestions));
  }
  return counts;
}

int Main(int argc, char** argv) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  Bench bench((self.parent_path().parent_path() / "lib").string());
  int index = -1;
  int passes = 0;
  bool count = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--case" && i + 1 < argc) {
      index = std::atoi(argv[++i]);
    } else if (argument == "--passes" && i + 1 < argc) {
      passes = std::atoi(argv[++i]);
    } else if (argument == "--no-instructions") {
      count = false;
    } else {
      Bench::Die("options: --no-instructions");
    }
  }
  AddCases(&bench);
  if (index >= 0) {
    bench.Repeat(static_cast<size_t>(index), passes);
    return 0;
  }
  bench.Measure();
  bench.Report(count ? CountInstructions(self.string(), bench.case_count())
                     : std::vector<double>());
  return 0;
}

}  // namespace
}  // namespace diapason::bench

int main(int argc, char** argv) { return diapason::bench::Main(argc, argv); }
