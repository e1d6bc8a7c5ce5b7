/*
 * Runs a schedule over the tensors of one iteration after the other: tensors become ready, pieces
 * are handed out, and are done some time later.
 *
 * A piece is a slice of one tensor or, with fusion, a run of whole tensors that are neighbours in
 * the plan. Fusion makes pieces larger, never smaller: a tensor that the schedule cuts stays cut,
 * and a buffer grows no larger than the schedule's pieces. Tensors wait for a multiple of the cycle
 * and then leave, in the schedule's order, as its credit allows.
 *
 * Tensors that are ready at the same instant count as ready from the front to the back, weights
 * before biases; so tell of all of them before asking for a piece.
 *
 * Whoever must follow another worker's order (all must sum the same row) does not ask for the next
 * piece but takes that one's; `gw_scheduler_has` then says whether its tensors are ready here. In
 * one iteration a scheduler either is asked or follows; who follows has no credit of its own.
 */
#ifndef GW_WORKLOAD_SCHEDULER_H
#define GW_WORKLOAD_SCHEDULER_H

#include "workload/model/plan.h"
#include "workload/schedule/schedule.h"

/* Tensors [first_tensor, first_tensor + tensor_count) of the plan; a slice if that is one. */
struct gw_piece {
    uint32_t
        id; /* below gw_scheduler_pieces(): the place in the plan of its first slice or
               tensor, so the same on every worker, and no two pieces of an iteration share it */
    uint32_t first_tensor;
    uint32_t tensor_count;
    uint64_t first; /* byte of the tensor; 0 unless it is a slice */
    uint64_t bytes;
};

struct gw_scheduler_cfg {
    const struct gw_schedule_ops *ops;
    const void *cfg; /* its options; read by gw_scheduler_open() alone */
    const struct gw_plan *plan;
    uint64_t fusion;       /* bytes of a buffer into which ready tensors are fused; 0: no fusion */
    bool credit_when_sent; /* credit is back when a piece was sent (gw_scheduler_sent); else when
                          its sum is back */
    gw_time cycle; /* of fusion: tensors wait for its multiples, counted from the iteration's
                      backward pass; 0: for none */
};

struct gw_scheduler;

/* The plan must stay where it is until the scheduler is closed. Before the first iteration all is
 * done: the forward pass may begin. */
struct gw_scheduler *gw_scheduler_open(const struct gw_scheduler_cfg *cfg);
void gw_scheduler_close(struct gw_scheduler *scheduler);

/* Pieces of an iteration, at most. */
uint32_t gw_scheduler_pieces(const struct gw_scheduler *scheduler);

/* An iteration's backward pass begins: nothing is ready, all of the last one is done. */
void gw_scheduler_begin(struct gw_scheduler *scheduler, gw_time now);

/* A tensor has its gradients. */
void gw_scheduler_ready(struct gw_scheduler *scheduler, uint32_t tensor, gw_time now);

/* The backward pass has ended: all tensors are ready. */
void gw_scheduler_backward_over(struct gw_scheduler *scheduler, gw_time now);

/* Hands out the next piece; false: none may leave now. */
bool gw_scheduler_next(struct gw_scheduler *scheduler, struct gw_piece *piece, gw_time now);

/* When `next` may answer otherwise without anything happening in between; else GW_TIME_NEVER. */
gw_time gw_scheduler_deadline(const struct gw_scheduler *scheduler, gw_time now);

/* Whether all tensors of a piece that another worker chose are ready here. */
bool gw_scheduler_has(const struct gw_scheduler *scheduler, const struct gw_piece *piece);

/*
 * A piece has left this worker, with `credit_when_sent`: once, and before it is done. Where the sum
 * waits for pieces that others choose by themselves, credit must not wait for it: each could have
 * given its credit to other pieces, and all would wait for ever.
 */
void gw_scheduler_sent(struct gw_scheduler *scheduler, const struct gw_piece *piece);

/*
 * A piece, of this worker's choice or another's, is summed and back. Returns true when the forward
 * pass of some layer may begin that could not before.
 */
bool gw_scheduler_done(struct gw_scheduler *scheduler, const struct gw_piece *piece);

/* Whether the forward pass of a layer may begin, as far as its parameters go. */
bool gw_scheduler_may_compute(const struct gw_scheduler *scheduler, uint32_t layer);

/* Whether all pieces of the iteration are done. */
bool gw_scheduler_is_over(const struct gw_scheduler *scheduler);

#endif
