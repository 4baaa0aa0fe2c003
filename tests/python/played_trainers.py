"""Stand-ins for the training loops of Hugging Face's Trainer and of Lightning: they call callbacks with the names, the
arguments and in the order of the real ones. Nothing is trained.
"""

from __future__ import annotations

import types


class PlayedTrainer:
    """Hugging Face's, as far as callbacks see it: every event on every callback, None leaves `control` as it is."""

    def __init__(self, callbacks: list, accumulate: int = 1) -> None:
        self.callbacks, self.accumulate = callbacks, accumulate
        self.state, self.control = types.SimpleNamespace(global_step=0), types.SimpleNamespace(should_training_stop=False)

    def call_event(self, event: str, **more: object) -> None:
        control = self.control
        for callback in self.callbacks:
            result = getattr(callback, event)(
                types.SimpleNamespace(), self.state, control, model=None, processing_class=None, optimizer=None, lr_scheduler=None,
                train_dataloader=None, eval_dataloader=None, **more)
            control = control if result is None else result
        assert control is self.control

    def evaluate(self) -> None:
        self.call_event("on_prediction_step")
        self.call_event("on_evaluate", metrics={})

    def train(self, steps: int) -> None:
        self.call_event("on_init_end")
        self.call_event("on_train_begin")
        self.call_event("on_epoch_begin")
        for step in range(steps):
            self.call_event("on_step_begin")
            for _ in range(self.accumulate - 1):
                self.call_event("on_substep_end")
            self.call_event("on_pre_optimizer_step")
            self.call_event("on_optimizer_step")
            self.state.global_step += 1
            self.call_event("on_step_end")
            if step % 2:
                self.call_event("on_log", logs={})
                self.evaluate()
                self.call_event("on_save")
        self.call_event("on_epoch_end")
        self.call_event("on_train_end")
        self.call_event("on_predict", metrics={})
        self.call_event("on_push_begin")


class PlayedCallback:
    """Lightning's base class: methods with its names and arguments."""

    @property
    def state_key(self) -> str:
        return self.__class__.__qualname__

    def setup(self, trainer: object, pl_module: object, stage: str) -> None: ...
    def teardown(self, trainer: object, pl_module: object, stage: str) -> None: ...
    def on_fit_start(self, trainer: object, pl_module: object) -> None: ...
    def on_train_start(self, trainer: object, pl_module: object) -> None: ...
    def on_train_end(self, trainer: object, pl_module: object) -> None: ...
    def on_train_batch_start(self, trainer: object, pl_module: object, batch: object, batch_idx: int) -> None: ...
    def on_train_batch_end(self, trainer: object, pl_module: object, outputs: object, batch: object, batch_idx: int) -> None: ...
    def on_validation_batch_end(self, trainer: object, pl_module: object, outputs: object, batch: object, batch_idx: int,
                                dataloader_idx: int = 0) -> None: ...
    def on_before_zero_grad(self, trainer: object, pl_module: object, optimizer: object) -> None: ...
    def on_predict_end(self, trainer: object, pl_module: object) -> None: ...
    def state_dict(self) -> dict: return {}


class PlayedLightning:
    """Lightning's Trainer: accepts only its Callback, and counts every optimizer's steps in global_step."""

    def __init__(self, callbacks: list, accumulate: int = 1, optimizers: int = 1, global_step: int = 0) -> None:
        for one in callbacks:
            if not isinstance(one, PlayedCallback):
                raise ValueError("Expected a parent")
        self.callbacks, self.accumulate, self.optimizers, self.global_step = callbacks, accumulate, optimizers, global_step

    def call(self, hook: str, *arguments: object) -> None:
        for callback in self.callbacks:
            assert callback.state_key == "StepCallback"
            assert getattr(callback, hook)(self, None, *arguments) is None

    def fit(self, batches: int) -> None:
        self.call("setup", "fit")
        self.call("on_validation_batch_end", None, None, 0)  # the sanity check
        self.call("on_fit_start")
        self.call("on_train_start")
        for batch in range(batches):
            self.call("on_train_batch_start", None, batch)
            if (batch + 1) % self.accumulate == 0:
                self.call("on_before_zero_grad", None)
                self.global_step += self.optimizers
            self.call("on_train_batch_end", {}, None, batch)
            if batch % 4 == 3:
                self.call("on_validation_batch_end", None, None, 0)
        self.call("on_train_end")
        self.call("teardown", "fit")
