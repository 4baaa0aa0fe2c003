locals {
  env = {
    NCCL_DEBUG      = "INFO"
    NCCL_IB_DISABLE = "true"
    NCCL_IB_HCA     = var.hca
  }
}
