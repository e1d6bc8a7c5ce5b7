/* Time of a node in fuzz targets: to its deadline or by some more, as the input has it. */
#ifndef GW_TESTS_NODE_TIME_H
#define GW_TESTS_NODE_TIME_H

#include "base/assert.h"
#include "core/node.h"

/* Of an odd step up to the deadline if there is one to come, else by `time`. What was due is done
 * then. */
static inline void gw_test_pass_time(struct gw_node *node, gw_time *now, uint8_t step, gw_time time)
{
    gw_time deadline = gw_node_deadline(node);
    if (step & 1 && deadline != GW_TIME_NEVER && gw_time_before(*now, deadline))
        *now = deadline;
    else
        *now += time;
    gw_node_expire(node, *now);
    deadline = gw_node_deadline(node);
    GW_ASSERT(deadline == GW_TIME_NEVER || gw_time_before(*now, deadline));
}

#endif
