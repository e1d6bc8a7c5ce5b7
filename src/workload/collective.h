/*
 * An all-reduce among workers alone as flows and triggers: every step of its schedule is a flow,
 * which starts when the worker has received what the step before brought.
 */
#ifndef GW_WORKLOAD_COLLECTIVE_H
#define GW_WORKLOAD_COLLECTIVE_H

#include "core/coll/coll.h"
#include "workload/workload.h"

struct gw_collective {
    const struct gw_coll_ops *coll;
    uint32_t n; /* workers; the schedule allows so many */
    const uint32_t *hosts;
    uint64_t elements;
    uint32_t element_size; /* bytes */
    uint32_t iterations;   /* one after the other */
    gw_time start;
    uint32_t tenant; /* that announces its bursts */
};

/* Adds the flows: n per step. */
void gw_collective_add(struct gw_workload *workload, const struct gw_collective *collective);

#endif
