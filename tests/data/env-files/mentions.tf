resource "x" "y" {
  NCCL_DEBUG  ~> INFO
  NCCL_SOCKET_IFNAME ~> eth0
}
