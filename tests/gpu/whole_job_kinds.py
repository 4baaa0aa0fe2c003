"""The models of whole_job.py: each is a class whose step() is one iteration and returns the loss as a tensor.

Weights, inputs and targets have fixed seeds: every launch computes the same, up to the order of sums.
"""

from __future__ import annotations

import inspect

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


def group_of(ranks: list[int], name: str) -> dist.ProcessGroup:
    """A communicator with a name, where this version of PyTorch hands names on."""
    named = {"group_desc": name} if "group_desc" in inspect.signature(dist.new_group).parameters else {}
    return dist.new_group(ranks, **named)


def ddp(model: nn.Module, device: torch.device, **options: object) -> nn.Module:
    ids = [device.index] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=ids, **options)


def seeded(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Decode:
    """One token of a tensor-parallel model: 16 layers with two sums of 32 KiB (16 x 1024 bf16) each."""

    BATCH, HIDDEN, LAYERS, WORDS = 16, 1024, 16, 8192

    def __init__(self, device: torch.device) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        inner, wide = self.HIDDEN // ranks, 4 * self.HIDDEN // ranks
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32

        def weight(seed: int, rows: int, columns: int) -> torch.Tensor:
            return (seeded(seed, rows, columns) / rows ** 0.5).to(device, kind)

        self.layers = []
        for layer in range(self.LAYERS):
            seed = 1000 * (layer + 1) + 10 * rank
            self.layers.append(((weight(seed, self.HIDDEN, inner), weight(seed + 1, inner, self.HIDDEN)),
                                (weight(seed + 2, self.HIDDEN, wide), weight(seed + 3, wide, self.HIDDEN))))
        self.embedding = weight(1, self.HIDDEN, self.BATCH).t().contiguous()
        self.head = weight(2, self.HIDDEN, self.WORDS)
        self.words = torch.arange(self.BATCH, device=device)

    @torch.no_grad()
    def step(self) -> torch.Tensor:
        x = self.embedding
        for layer in self.layers:
            for into, out in layer:
                y = functional.silu(functional.layer_norm(x, (self.HIDDEN,)) @ into) @ out
                dist.all_reduce(y)
                x = x + y
        logits = functional.layer_norm(x, (self.HIDDEN,)) @ self.head
        logits.argmax(1)
        return functional.cross_entropy(logits.float(), self.words)


class Graphs(Decode):
    """The same token in a CUDA graph, which is replayed: its sums keep the configuration of the capture."""

    WARM_UP = 3

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.graph = self.loss = None
        if device.type != "cuda":
            return  # every token is made call by call
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(self.WARM_UP):
                super().step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        # The watchdog thread of PyTorch asks for events meanwhile.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.loss = super().step()
        torch.cuda.synchronize()

    def step(self) -> torch.Tensor:
        if self.graph is None:
            return super().step()
        self.graph.replay()
        return self.loss

    def close(self) -> None:
        """Before the communicator: it waits for graphs that still have its calls."""
        self.graph = self.loss = None


class Training:
    """What the training jobs share: a fixed batch of each rank, a loss, plain gradient descent."""

    def __init__(self, model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.model, self.inputs, self.targets = model, inputs, targets
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def after_backward(self) -> None:
        pass

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(self.model(self.inputs), self.targets)
        loss.backward()
        self.after_backward()
        self.optimizer.step()
        return loss.detach()


class Residual(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(256, elementwise_affine=False)
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(self.norm(x))


def batch(device: torch.device, rows: int, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    rank = dist.get_rank()
    return seeded(100 + rank, rows, *shape).to(device), seeded(200 + rank, rows, *shape).to(device)


class Ddp(Training):
    """19 MB of gradients (8 blocks of 257, 1028 and 1025 KiB) in buckets of 256 KiB."""

    def __init__(self, device: torch.device) -> None:
        blocks = [Residual(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(8)]
        model = ddp(nn.Sequential(*blocks).to(device), device, bucket_cap_mb=0.25)
        super().__init__(model, *batch(device, 1024, 256))


class Fsdp2(Training):
    """fully_shard over 6 blocks of 3 MB."""

    def __init__(self, device: torch.device) -> None:
        from torch.distributed.fsdp import fully_shard

        blocks = [Residual(nn.Linear(256, 1536), nn.GELU(), nn.Linear(1536, 256)) for _ in range(6)]
        model = nn.Sequential(*blocks, nn.Linear(256, 256)).to(device)
        for block in model[:-1]:
            fully_shard(block)
        fully_shard(model)
        super().__init__(model, *batch(device, 1024, 256))


class _ToParts(torch.autograd.Function):
    """Into layers that are divided over a group: the gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class _FromParts(torch.autograd.Function):
    """Out of them: the sum of their results."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        x = x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


class _Exchange(torch.autograd.Function):
    """Rows to the ranks that work on them, as many to each; the gradient goes the way back."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(gradient)
        dist.all_to_all_single(out, gradient.contiguous())
        return out


class ParallelBlock(nn.Module):
    """A transformer layer whose heads and inner columns are divided over a group."""

    HIDDEN, HEADS = 256, 8

    def __init__(self, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.group, self.parts = group, dist.get_world_size(group)
        inner = self.HIDDEN // self.parts
        self.norms = nn.ModuleList(nn.LayerNorm(self.HIDDEN) for _ in range(2))
        self.qkv, self.out = nn.Linear(self.HIDDEN, 3 * inner), nn.Linear(inner, self.HIDDEN, bias=False)
        self.up, self.down = nn.Linear(self.HIDDEN, 4 * inner), nn.Linear(4 * inner, self.HIDDEN, bias=False)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        rows, tokens, _ = x.shape
        q, k, v = (part.view(rows, tokens, self.HEADS // self.parts, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(rows, tokens, -1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + _FromParts.apply(self.attention(_ToParts.apply(self.norms[0](x), self.group)), self.group)
        inner = functional.gelu(self.up(_ToParts.apply(self.norms[1](x), self.group)))
        return x + _FromParts.apply(self.down(inner), self.group)


class TensorAndData(Training):
    """A small transformer: pairs of ranks share each layer, and the pairs train on different data."""

    def __init__(self, device: torch.device) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        if ranks % 2:
            raise SystemExit("whole_job: tp-dp needs an even number of ranks")
        tensor = [group_of([first, first + 1], "tp") for first in range(0, ranks, 2)][rank // 2]
        data = [group_of(list(range(part, ranks, 2)), "dp") for part in range(2)][rank % 2]
        torch.manual_seed(1 + rank % 2)
        model = nn.Sequential(*[ParallelBlock(tensor) for _ in range(4)])
        model = ddp(model.to(device), device, process_group=data, bucket_cap_mb=0.5)
        pair = rank // 2
        super().__init__(model, seeded(100 + pair, 4, 64, 256).to(device), seeded(200 + pair, 4, 64, 256).to(device))


class Experts(nn.Module):
    """One expert per rank. Each expert takes the rows that a router rates highest for it, as many of every rank."""

    def __init__(self) -> None:
        super().__init__()
        ranks = dist.get_world_size()
        self.router = nn.Linear(256, ranks, bias=False)
        self.expert = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.softmax(self.router(x), dim=-1)
        each = x.shape[0] // scores.shape[1]
        chosen = scores.topk(each, dim=0).indices.t().reshape(-1)  # rows by expert
        experts = torch.arange(scores.shape[1], device=x.device).repeat_interleave(each)
        done = _Exchange.apply(self.expert(_Exchange.apply(x[chosen])))
        return x.index_add(0, chosen, done * scores[chosen, experts].unsqueeze(1))


class MixtureOfExperts(Training):
    """Four layers of experts: all_to_all to them and back; the gradients of what all ranks have are summed."""

    def __init__(self, device: torch.device) -> None:
        layers = [layer for _ in range(4) for layer in (Residual(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)), Experts())]
        model = nn.Sequential(*layers).to(device)
        self.shared = [parameter for name, parameter in model.named_parameters() if ".expert." not in name]
        super().__init__(model, *batch(device, 1024, 256))

    def after_backward(self) -> None:
        waits = [dist.all_reduce(one.grad, async_op=True) for one in self.shared]
        for wait in waits:
            wait.wait()
        for one in self.shared:
            one.grad.div_(dist.get_world_size())


class ConvolutionBlock(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                                  nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        same = stride == 1 and channels == out
        self.side = nn.Identity() if same else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.main(x) + self.side(x))


class ResNet(Training):
    """A small residual network on 32 x 32 images, 11 MB of gradients in buckets of 1 MiB; statistics are broadcast."""

    def __init__(self, device: torch.device) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        channels = 64
        for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
            layers.append(ConvolutionBlock(channels, out, stride))
            channels = out
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).to(device)
        rank = dist.get_rank()
        inputs, targets = seeded(100 + rank, 32, 3, 32, 32).to(device), seeded(200 + rank, 32, 10).to(device)
        super().__init__(ddp(model, device, bucket_cap_mb=1), inputs, targets)


class Regroup:
    """Pairs of ranks whose communicator is made anew every 50 iterations, beside one that all ranks keep."""

    EVERY, CALLS = 50, 8

    def __init__(self, device: torch.device) -> None:
        self.iteration, self.group = 0, None
        self.weight = (seeded(1, 512, 512) / 512 ** 0.5).to(device)
        self.small, self.large = seeded(2, 64, 512).to(device), seeded(3, 512, 512).to(device)

    def renew(self) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        if self.group is not None:
            dist.destroy_process_group(self.group)
        self.group = [group_of(list(range(first, min(first + 2, ranks))), "pair") for first in range(0, ranks, 2)][rank // 2]

    @torch.no_grad()
    def step(self) -> torch.Tensor:
        if self.iteration % self.EVERY == 0:
            self.renew()
        self.iteration += 1
        x = self.small
        for _ in range(self.CALLS):
            x = torch.tanh(x @ self.weight)
            dist.all_reduce(x, group=self.group)
        y = self.large + x.mean()
        dist.all_reduce(y)
        return y.square().mean()


KINDS = {"decode": Decode, "graphs": Graphs, "ddp": Ddp, "fsdp2": Fsdp2, "tp-dp": TensorAndData, "moe": MixtureOfExperts,
         "resnet": ResNet, "regroup": Regroup}
