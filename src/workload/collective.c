/* An all-reduce without switches and servers as flows; see collective.h. */
#include "workload/collective.h"

/*
 * Flow (step, rank) has index first + step * n + rank. Its arrival starts the next step of the
 * worker that it went to.
 */
void gw_collective_add(struct gw_workload *workload, const struct gw_collective *collective)
{
    const struct gw_coll_ops *coll = collective->coll;
    uint32_t n = collective->n, round = coll->steps(n), steps = round * collective->iterations;
    uint32_t first_flow = workload->flow_count, first_trigger = workload->trigger_count;
    for (uint32_t step = 0; step + 1 < steps; step++)
        for (uint32_t rank = 0; rank < n; rank++) {
            uint32_t to = coll->step(rank, n, 0, step % round, collective->elements).to;
            gw_workload_add_trigger(workload, 1, false);
            gw_workload_add_start(workload, first_flow + (step + 1) * n + to);
        }
    for (uint32_t step = 0; step < steps; step++)
        for (uint32_t rank = 0; rank < n; rank++) {
            struct gw_coll_step move = coll->step(rank, n, 0, step % round, collective->elements);
            struct gw_flow_spec flow = {
                .src = collective->hosts[rank],
                .dst = collective->hosts[move.to],
                .bytes = move.send_count * collective->element_size,
                .start = step ? GW_TIME_NEVER : collective->start,
                .id = workload->flow_count,
                .fires_sent = GW_TRIGGER_NONE,
                .fires_received =
                    step + 1 < steps ? first_trigger + step * n + rank : GW_TRIGGER_NONE,
                .tenant = collective->tenant,
            };
            gw_workload_add_flow(workload, &flow);
        }
    gw_workload_add_collective(workload, coll->algo.name, first_flow);
}
