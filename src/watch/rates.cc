#include "watch/rates.h"

#include <algorithm>

namespace diapason::watch {
namespace {

constexpr double kBusy = 0.5;
constexpr size_t kMostBusy = 4;

double PerSecond(uint64_t before, uint64_t now, double seconds) {
  return now > before ? static_cast<double>(now - before) / seconds : 0;
}

double Share(double before, double now, double seconds) {
  return now > before ? (now - before) / seconds : 0;
}

ThreadRate RateOf(const host::ThreadSample& before, const host::ThreadSample& now, double seconds) {
  ThreadRate rate;
  rate.tid = now.tid;
  rate.name = now.name;
  rate.role = now.role;
  rate.state = now.state;
  rate.user = Share(before.user_s, now.user_s, seconds);
  rate.system = Share(before.system_s, now.system_s, seconds);
  rate.has_wait = now.has_wait;
  rate.wait = Share(before.wait_s, now.wait_s, seconds);
  rate.voluntary_per_s = PerSecond(before.voluntary, now.voluntary, seconds);
  rate.involuntary_per_s = PerSecond(before.involuntary, now.involuntary, seconds);
  rate.last_cpu = now.last_cpu;
  rate.allowed_cpus = now.allowed_cpus;
  rate.waits_in = now.waits_in;
  return rate;
}

void AddTo(ThreadRate* sum, const ThreadRate& rate) {
  sum->user += rate.user;
  sum->system += rate.system;
  sum->has_wait |= rate.has_wait;
  sum->wait += rate.wait;
  sum->voluntary_per_s += rate.voluntary_per_s;
  sum->involuntary_per_s += rate.involuntary_per_s;
  sum->futex.looks += rate.futex.looks;
  sum->futex.told += rate.futex.told;
  sum->futex.futex += rate.futex.futex;
}

bool BusierFirst(const ThreadRate& a, const ThreadRate& b) { return a.cpu() > b.cpu(); }

}  // namespace

ProcessRate RatesOf(const host::ProcessSample& before, const host::ProcessSample& now,
                    const FutexByThread& futex) {
  ProcessRate rates;
  // Avoids a division by zero if the clock does not advance.
  rates.seconds = std::max(now.time_s - before.time_s, 1e-3);
  rates.major_faults_per_s = PerSecond(before.major_faults, now.major_faults, rates.seconds);
  std::map<pid_t, const host::ThreadSample*> known;
  for (const host::ThreadSample& thread : before.threads) known[thread.tid] = &thread;
  std::map<std::string, ThreadRate> sums;
  rates.total.threads = now.threads.size();
  rates.total.name = now.name;
  for (const host::ThreadSample& thread : now.threads) {
    const auto found = known.find(thread.tid);
    const bool same = found != known.end() && found->second->start_ticks == thread.start_ticks;
    ThreadRate rate = RateOf(same ? *found->second : host::ThreadSample(), thread, rates.seconds);
    if (const auto looks = futex.find(thread.tid); looks != futex.end()) rate.futex = looks->second;
    AddTo(&rates.total, rate);
    if (rate.role == host::ThreadRole::kProgress) {
      rates.progress_cpu += rate.cpu();
      ++rates.progress_threads;
    }
    if (rate.role != host::ThreadRole::kOther) {
      rates.named.push_back(std::move(rate));
      continue;
    }
    const auto [sum, fresh] = sums.try_emplace(rate.name);
    if (fresh) {
      sum->second.name = rate.name;
      sum->second.threads = 0;
    }
    ++sum->second.threads;
    AddTo(&sum->second, rate);
    if (rate.cpu() >= kBusy) rates.busy.push_back(std::move(rate));
  }
  for (auto& [name, sum] : sums) rates.others.push_back(std::move(sum));
  std::stable_sort(rates.others.begin(), rates.others.end(), BusierFirst);
  std::stable_sort(rates.busy.begin(), rates.busy.end(), BusierFirst);
  if (rates.busy.size() > kMostBusy) rates.busy.resize(kMostBusy);
  return rates;
}

}  // namespace diapason::watch
