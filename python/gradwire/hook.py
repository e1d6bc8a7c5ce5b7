"""A communication hook for DistributedDataParallel: its gradients go by a job of their own, beside
whatever backend the group has.

    model.register_comm_hook(gradwire.HookState(bound=0.1), gradwire.ddp_hook)

Every bucket is one all-reduce that gives the average, and says of which layers it is. With a bound
some of it may be missing: the average is of what arrived, the same on all ranks.
"""

import atexit
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.constants import default_pg_timeout

from .errors import InvalidError
from .job import Job
from .native import value_of
from .options import CallOptions, Importance, JobOptions, Via
from .parts import Parts
from .staging import Staging
from .works import Finisher, Outcome, Work, deadline_ms, leave, meet, meeting_place, tell_where


class HookState:
    """The job of the ranks of a group, which open it together, and how its gradients go.

    `bound` is the part of each rank's gradients that averages may do without, `bound_pull` the part
    of the averages that may be missing, and then is 0; `importance` says which packets are lost
    last. Further keywords are options of the job, such as server, switch or announce. The counters
    are of the buckets that have ended.
    """

    def __init__(
        self,
        group: Any = None,
        *,
        via: Via | None = None,
        bound: float = 0.0,
        bound_pull: float = 0.0,
        importance: Importance = "means",
        **options: Any,
    ) -> None:
        self.fragments = 0  # in the buckets that were reduced with a bound
        self.left_out = 0  # of these at all ranks: what averages do without
        self.missing = 0  # averages that no rank has
        self._call: CallOptions = {}
        value_of("importance", importance)  # what is no word is none without a bound, too
        self._is_bounded = bound != 0 or bound_pull != 0
        if self._is_bounded:
            self._call |= {"bound": bound, "bound_pull": bound_pull, "importance": importance}
        self._layers = 0  # buckets of a step, once one has ended
        self._staging = Staging()
        rank = dist.get_rank(group)
        if rank < 0:
            raise InvalidError("this rank is not of the group")
        place = [meeting_place() if rank == 0 else ""]
        root = 0 if group is None else dist.get_global_rank(group, 0)
        try:
            dist.broadcast_object_list(place, root, group)
        except BaseException:
            leave(place[0])
            raise
        ranks = {"rank": rank, "world": dist.get_world_size(group)}
        own = {"deadline_ms": deadline_ms(default_pg_timeout)}  # as the gradients' other ways
        job: JobOptions = {**own, **options, **ranks, "via": via}  # type: ignore[typeddict-item]
        job = meet(place[0], job)
        self.job = Job(**job)
        try:  # what is wrong is found at once
            self.job.allreduce(torch.zeros(1), op="average", **self._call)
        except BaseException:
            self.job.close()
            raise
        tell_where(self.job, job)
        self._finisher = Finisher(self.job)
        atexit.register(self.close)

    def close(self) -> None:
        """Leaves the job, after what is in work."""
        atexit.unregister(self.close)
        self._staging.close()
        self._finisher.close()
        self.job.close()

    def start(self, bucket: Any) -> Any:
        """Begins the average of a bucket; its future has the bucket's tensor."""
        flat = bucket.buffer()
        call: CallOptions = {**self._call}
        parts = Parts() if self._is_bounded else None
        if parts is not None:
            call["parts"] = parts
        if self._layers:  # the first buckets are of the last layers
            call |= {"layer": max(0, self._layers - 1 - bucket.index()), "layers": self._layers}
        if bucket.is_last():
            self._layers = bucket.index() + 1

        def count() -> None:
            if parts is not None:
                self.fragments += parts.count
                self.left_out += parts.count * self.job.world - sum(parts.contributors)
                self.missing += parts.missing

        def begin(values: torch.Tensor, outcome: Outcome, finish: Callable[[], None]) -> None:
            def start() -> Work:
                started = self.job.start_allreduce(values, op="average", **call)
                return Work([started], outcome, finish)

            self._finisher.start(start)

        return self._staging.run("allreduce", flat, begin, count).future


def ddp_hook(state: HookState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """What register_comm_hook() takes; the ranks of `state` are those of the model's group."""
    future: torch.futures.Future[torch.Tensor] = state.start(bucket)
    return future
