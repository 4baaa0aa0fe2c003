"""StepCallback: step() from the training loops of Hugging Face's Trainer and of Lightning."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Tuple, Type

from ._plugin import step

_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")
_classes: Dict[Tuple[type, ...], type] = {}


def _nothing(*_: Any, **__: Any) -> None:
    return None


class StepCallback:
    """Calls diapason.step() once per optimizer step, on every rank, and never in evaluation.

        transformers.Trainer(..., callbacks=[diapason.StepCallback()])
        lightning.Trainer(..., callbacks=[diapason.StepCallback()])

    With gradient accumulation an iteration is all of its micro-batches. In Lightning a batch in which several optimizers
    step is one iteration.

    It imports neither of them. Lightning accepts only its own Callback class: an instance that is created after
    `import lightning.pytorch` (or pytorch_lightning) is one.
    """

    def __new__(cls) -> StepCallback:
        bases = tuple(_callback_classes())
        if not bases or issubclass(cls, bases):
            return super().__new__(cls)
        key = (cls, *bases)
        if key not in _classes:
            _classes[key] = type(cls.__name__, key, {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__})
        made: StepCallback = object.__new__(_classes[key])
        return made

    def __init__(self) -> None:
        self._declared: Type[StepCallback] = next(one for one in type(self).__mro__ if one not in _classes.values())
        self._steps: int | None = None  # of Lightning's optimizers

    def __reduce__(self) -> Tuple[Type[StepCallback], Tuple[()]]:
        """Lightning sends callbacks to the processes it starts."""
        return self._declared, ()

    # Hugging Face's Trainer: every event is called as (args, state, control, **kwargs); None leaves `control` as it is.

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After the optimizer step; micro-batches before it end in on_substep_end."""
        step()

    # Lightning: called as (trainer, pl_module, ...).

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """A resumed training has taken steps before."""
        self._steps = trainer.global_step

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, *_: Any) -> None:
        """After every micro-batch; global_step counts those in which an optimizer has stepped."""
        steps = trainer.global_step
        if steps != self._steps:
            self._steps = steps
            step()

    # Both have these, with different arguments.
    on_train_end = on_predict_end = on_init_end = on_epoch_end = on_epoch_begin = on_train_begin = _nothing

    def __getattr__(self, name: str) -> Callable[..., None]:
        """The Trainer calls every event that it knows on every callback."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _callback_classes() -> list[type]:
    """Lightning's, under the names by which it is imported. Nothing is imported here."""
    found = [getattr(sys.modules.get(name), "Callback", None) for name in _LIGHTNING]
    return [one for one in dict.fromkeys(found) if isinstance(one, type)]
