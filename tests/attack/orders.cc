// Gives orders to a job that is tuned from outside (DIAPASON_MODE=tune): orders STORE JOB SEED.
// Rows at random, with and without sense, and texts that are no orders, until the job is gone.
#include "agree/orders.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/random.h"
#include "policy/order.h"

namespace {

using diapason::CounterRandom;

constexpr int kMostOrders = 4000;
constexpr int kMostTries = 15000;  // until the job has a store
constexpr useconds_t kPause = 2000;

std::string Drawn(const CounterRandom& random, uint64_t* drawn) {
  const auto draw = [&](uint64_t below) { return random.Bits(++*drawn) % below; };
  if (draw(8) == 0) return draw(2) == 0 ? "run faster" : "100 d1.AAAA.0123456789abcdef";
  diapason::policy::Order order;
  order.length = std::chrono::milliseconds(1 + draw(draw(2) == 0 ? 40 : 4000));
  for (uint64_t rows = draw(6); rows > 0; --rows) {
    diapason::policy::Rule rule;
    rule.collective = static_cast<diapason::Collective>(draw(5));
    rule.max_bytes = uint64_t{1} << draw(34);
    rule.min_bytes = draw(2) == 0 ? 0 : rule.max_bytes / 2 + 1;
    rule.config.algorithm = static_cast<int>(draw(7));
    rule.config.protocol = static_cast<int>(draw(3));
    rule.config.channels = draw(2) == 0 ? 0 : static_cast<int>(draw(64));
    if (draw(4) == 0) rule.ranks = static_cast<int64_t>(draw(9));
    order.rows.rules.push_back(rule);
  }
  return diapason::policy::OrderText(order);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  diapason::agree::StoreOptions options;
  options.where = argv[1];
  options.job = argv[2];
  options.existing_only = true;
  std::unique_ptr<diapason::agree::CellStore> store;
  for (int i = 0; i < kMostTries && store == nullptr; ++i) {
    auto opened = diapason::agree::OpenStore(options);
    if (opened.ok()) store = std::move(opened).value();
    if (store == nullptr) usleep(kPause);
  }
  if (store == nullptr) return 1;
  diapason::agree::OrderLog orders(store.get());
  const CounterRandom random(std::strtoull(argv[3], nullptr, 10), 0);
  uint64_t drawn = 0;
  for (int i = 0; i < kMostOrders; ++i) {
    if (!orders.Give(Drawn(random, &drawn)).ok()) return 0;
    usleep(kPause);
  }
  return 0;
}
