#include "linear_scan.h"

namespace diapason::bench {

int LinearScan(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels) {
  const auto* scan = static_cast<const ScanContext*>(context);
  for (const ScanRule& rule : scan->rules) {
    if (rule.collective != collective || bytes < rule.min_bytes || bytes > rule.max_bytes) continue;
    if (rule.nodes != -1 && rule.nodes != static_cast<int>(scan->nodes)) continue;
    if (rule.ranks != -1 && rule.ranks != static_cast<int>(scan->ranks)) continue;
    if (rule.pipe_ops != -1 && rule.pipe_ops != pipe_ops) continue;
    if (rule.reg_buff != -1 && rule.reg_buff != reg_buff) continue;
    if (rule.algorithm < algorithms && rule.protocol < protocols) {
      float* cell = reinterpret_cast<float*>(table) + rule.algorithm * protocols + rule.protocol;
      if (*cell >= 0) *cell = 0;
    }
    if (rule.channels > 0) *channels = rule.channels;
    break;
  }
  return 0;
}

}  // namespace diapason::bench
