#include "model/forest.h"

#include <cmath>
#include <cstring>

#include "base/text.h"

namespace diapason::model {
namespace {

constexpr size_t kMostNodes = 1 << 24;

template <typename T>
void Append(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

template <typename T>
bool Take(std::string_view* in, T* value) {
  if (in->size() < sizeof(T)) return false;
  std::memcpy(value, in->data(), sizeof(T));
  in->remove_prefix(sizeof(T));
  return true;
}

}  // namespace

Status Forest::AddTree(std::span<const int32_t> feature, std::span<const int32_t> left,
                       std::span<const int32_t> right, std::span<const float> split,
                       size_t features) {
  const size_t count = feature.size();
  if (count == 0 || left.size() != count || right.size() != count || split.size() != count) {
    return Invalid("a tree whose arrays differ in length");
  }
  // Stores siblings next to each other, in breadth-first order; a node that occurs twice or does
  // not exist is an error.
  struct Pending {
    int32_t from;
    size_t to;
  };
  std::vector<bool> met(count, false);
  std::vector<Pending> queue = {{0, nodes_.size()}};
  const size_t before = nodes_.size();
  const auto refuse = [&](const std::string& why) {
    nodes_.resize(before);
    return Invalid(why);
  };
  if (before + count > kMostNodes) return refuse("too many trees");
  nodes_.emplace_back();
  for (size_t next = 0; next < queue.size(); ++next) {
    const Pending pending = queue[next];
    const auto from = static_cast<size_t>(pending.from);
    if (from >= count || met[from]) return refuse("a tree whose nodes do not hang together");
    met[from] = true;
    Node node;
    node.split = split[from];
    if (!std::isfinite(node.split)) return refuse("a tree with a value that is no number");
    if (left[from] >= 0) {
      node.feature = feature[from];
      if (node.feature < 0 || static_cast<size_t>(node.feature) >= features) {
        return refuse(Format("a tree that asks for feature {} of {}", node.feature, features));
      }
      node.left = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
      nodes_.emplace_back();
      queue.push_back({left[from], static_cast<size_t>(node.left)});
      queue.push_back({right[from], static_cast<size_t>(node.left) + 1});
    } else if (right[from] >= 0) {
      return refuse("a tree whose nodes do not hang together");
    }
    if (queue.size() > count) return refuse("a tree whose nodes do not hang together");
    nodes_[pending.to] = node;
  }
  roots_.push_back(static_cast<int32_t>(before));
  return {};
}

double Forest::Predict(const float* row) const {
  double sum = 0;
  for (const int32_t root : roots_) {
    const Node* node = &nodes_[static_cast<size_t>(root)];
    while (node->feature >= 0) {
      node = &nodes_[static_cast<size_t>(node->left) + (row[node->feature] < node->split ? 0 : 1)];
    }
    sum += static_cast<double>(node->split);
  }
  return sum;
}

// The rows in column order, and which columns are constant.
struct Forest::Columns {
  Columns(const float* rows, size_t count, size_t stride)
      : values(count * stride), height(count), same(stride) {
    for (size_t c = 0; c < stride; ++c) {
      for (size_t i = 0; i < count; ++i) values[c * count + i] = rows[i * stride + c];
      same[c] = values[c * count] == values[c * count + count - 1] ? 1 : 0;
    }
  }
  std::vector<float> values;
  size_t height;
  std::vector<char> same;
};

// Rows first..last-1 reach this node.
void Forest::Walk(const Columns& columns, size_t first, size_t last, int32_t node,
                  double* steps) const {
  const Node* const nodes = nodes_.data();
  for (;;) {
    const Node here = nodes[node];
    if (here.feature < 0) {
      steps[first] += static_cast<double>(here.split);
      steps[last] -= static_cast<double>(here.split);
      return;
    }
    const auto feature = static_cast<size_t>(here.feature);
    const float* const column = &columns.values[feature * columns.height];
    const bool first_left = column[first] < here.split;
    if (columns.same[feature] != 0 || (column[last - 1] < here.split) == first_left) {
      node = here.left + (first_left ? 0 : 1);
      continue;
    }
    size_t low = first;  // on the first row's side
    size_t high = last - 1;
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      ((column[middle] < here.split) == first_left ? low : high) = middle;
    }
    Walk(columns, first, high, here.left + (first_left ? 0 : 1), steps);
    first = high;
    node = here.left + (first_left ? 1 : 0);
  }
}

void Forest::PredictMonotone(const float* rows, size_t count, size_t stride, double* out) const {
  if (count == 0) return;
  const Columns columns(rows, count, stride);
  std::vector<double> steps(count + 1, 0);
  for (const int32_t root : roots_) Walk(columns, 0, count, root, steps.data());
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += steps[i];
    out[i] += sum;
  }
}

std::string Forest::Bytes() const {
  std::string bytes;
  Append(&bytes, static_cast<uint32_t>(roots_.size()));
  Append(&bytes, static_cast<uint32_t>(nodes_.size()));
  for (const int32_t root : roots_) Append(&bytes, root);
  for (const Node& node : nodes_) {
    Append(&bytes, static_cast<int16_t>(node.feature));
    Append(&bytes, node.left);
    Append(&bytes, node.split);
  }
  return bytes;
}

Result<Forest> Forest::FromBytes(std::string_view bytes, size_t features) {
  uint32_t roots = 0;
  uint32_t nodes = 0;
  if (!Take(&bytes, &roots) || !Take(&bytes, &nodes) || nodes > kMostNodes || roots > nodes ||
      bytes.size() != roots * sizeof(int32_t) + size_t{nodes} * 10) {
    return Invalid("trees whose length does not fit");
  }
  Forest forest;
  forest.roots_.resize(roots);
  // Every node has one parent only, so that a prediction costs no more than the number of nodes.
  std::vector<bool> met(nodes, false);
  for (int32_t& root : forest.roots_) {
    Take(&bytes, &root);
    if (root < 0 || static_cast<uint32_t>(root) >= nodes || met[static_cast<size_t>(root)]) {
      return Invalid("a tree without a root");
    }
    met[static_cast<size_t>(root)] = true;
  }
  forest.nodes_.resize(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    Node& node = forest.nodes_[i];
    int16_t feature = 0;
    Take(&bytes, &feature);
    Take(&bytes, &node.left);
    Take(&bytes, &node.split);
    node.feature = feature;
    if (!std::isfinite(node.split)) return Invalid("a tree with a value that is no number");
    if (feature < 0) continue;
    // Children come after their parent: every walk terminates.
    if (static_cast<size_t>(feature) >= features || node.left <= static_cast<int64_t>(i) ||
        static_cast<int64_t>(node.left) + 1 >= static_cast<int64_t>(nodes) ||
        met[static_cast<size_t>(node.left)] || met[static_cast<size_t>(node.left) + 1]) {
      return Invalid("a tree whose nodes do not hang together");
    }
    met[static_cast<size_t>(node.left)] = met[static_cast<size_t>(node.left) + 1] = true;
  }
  return forest;
}

}  // namespace diapason::model
