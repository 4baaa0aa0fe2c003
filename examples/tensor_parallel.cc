// A row-parallel linear layer, the building block of tensor parallelism: Y = X W, with W cut by
// rows.
//
// Rank r holds the rows of W that belong to its part of the inputs, multiplies what it has, and the
// partial results are added up over all ranks with one all_reduce. Every rank then has the whole Y.
//
//   diapason launch -n 4 -- tensor_parallel              # or mpirun, srun, torchrun
//   diapason launch -n 4 -- tensor_parallel --wire bf16  # half the bytes on the way
//
// The batch is cut in two: while the first half travels, the second is computed.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "diapason/comm.h"

namespace {

constexpr size_t kBatch = 64;
constexpr size_t kInputs = 840;  // divisible by 1 to 8 ranks
constexpr size_t kOutputs = 1024;

// Small whole numbers: sums of them are exact, so the result can be checked to the last bit.
float Input(size_t row, size_t column) { return static_cast<float>((row * 7 + column) % 5) - 2; }
float Weight(size_t row, size_t column) { return static_cast<float>((row + column * 3) % 7) - 3; }

class RowParallelLinear {
 public:
  RowParallelLinear(diapason::Group* group, std::optional<diapason::DataType> wire)
      : group_(group), wire_(wire), rows_(kInputs / static_cast<size_t>(group->size())) {
    const size_t first = rows_ * static_cast<size_t>(group->rank());
    weights_.resize(rows_ * kOutputs);
    for (size_t i = 0; i < rows_; ++i) {
      for (size_t j = 0; j < kOutputs; ++j) weights_[i * kOutputs + j] = Weight(first + i, j);
    }
  }

  // `x` has kBatch rows of this rank's part of the inputs; `y` gets kBatch rows of all outputs.
  diapason::Status Forward(const float* x, float* y) {
    const size_t half = kBatch / 2;
    Multiply(x, y, half);
    diapason::Call first = diapason::AllReduceCall(y, y, half * kOutputs, diapason::DataType::kF32);
    first.wire = wire_;
    diapason::Work travelling = group_->Start(first);
    Multiply(x + half * rows_, y + half * kOutputs, kBatch - half);
    diapason::Call second = first;
    second.in = second.out = y + half * kOutputs;
    second.count = (kBatch - half) * kOutputs;
    const diapason::Status status = group_->Run(second);
    const diapason::Status arrived = travelling.Wait();
    return status.ok() ? arrived : status;
  }

  size_t rows() const { return rows_; }

 private:
  void Multiply(const float* x, float* y, size_t batch) const {
    std::memset(y, 0, batch * kOutputs * sizeof(float));
    for (size_t b = 0; b < batch; ++b) {
      for (size_t i = 0; i < rows_; ++i) {
        const float value = x[b * rows_ + i];
        for (size_t j = 0; j < kOutputs; ++j) {
          y[b * kOutputs + j] += value * weights_[i * kOutputs + j];
        }
      }
    }
  }

  diapason::Group* group_;
  std::optional<diapason::DataType> wire_;
  size_t rows_;
  std::vector<float> weights_;
};

int Fail(const diapason::Status& status) {
  std::fprintf(stderr, "tensor_parallel: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<diapason::DataType> wire;
  if (argc == 3 && std::strcmp(argv[1], "--wire") == 0) {
    const diapason::Result<diapason::DataType> type = diapason::ParseDataType(argv[2]);
    if (!type.ok()) return Fail(type.status());
    wire = type.value();
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: tensor_parallel [--wire bf16|f16]\n");
    return 2;
  }

  diapason::Result<std::unique_ptr<diapason::Group>> created = diapason::Group::Create();
  if (!created.ok()) return Fail(created.status());
  diapason::Group& group = *created.value();
  if (kInputs % static_cast<size_t>(group.size()) != 0) {
    return Fail(diapason::Invalid("the number of ranks has to divide 840"));
  }

  RowParallelLinear layer(&group, wire);
  const size_t first = layer.rows() * static_cast<size_t>(group.rank());
  std::vector<float> x(kBatch * layer.rows());
  std::vector<float> y(kBatch * kOutputs);
  for (size_t b = 0; b < kBatch; ++b) {
    for (size_t i = 0; i < layer.rows(); ++i) x[b * layer.rows() + i] = Input(b, first + i);
  }

  constexpr int kForwards = 20;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kForwards; ++i) {
    const diapason::Status status = layer.Forward(x.data(), y.data());
    if (!status.ok()) return Fail(status);
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;

  // What one rank alone would have computed.
  double worst = 0;
  for (size_t b = 0; b < kBatch; b += 9) {
    for (size_t j = 0; j < kOutputs; j += 5) {
      double exact = 0;
      for (size_t i = 0; i < kInputs; ++i) exact += Input(b, i) * Weight(i, j);
      worst = std::fmax(worst, std::fabs(exact - static_cast<double>(y[b * kOutputs + j])));
    }
  }
  // A narrower wire rounds; f32 must be exact here.
  const double allowed = wire.has_value() ? 64 : 0;
  if (group.rank() == 0) {
    const diapason::Statistics statistics = group.statistics();
    std::printf("%s, %d ranks%s\n", group.backend().c_str(), group.size(),
                group.simulated() ? " (simulated)" : "");
    std::printf("forward: %.2f ms, largest error %g\n", spent.count() / kForwards, worst);
    std::printf("all_reduce: %llu calls, %.1f MB, algbw %.2f GB/s, busbw %.2f GB/s, slowest %s\n",
                static_cast<unsigned long long>(statistics.operations),
                static_cast<double>(statistics.bytes) / 1e6, statistics.algbw / 1e9,
                statistics.busbw / 1e9, statistics.slowest.c_str());
  }
  if (worst > allowed) return Fail(diapason::Internal("the result is wrong"));
  return 0;
}
