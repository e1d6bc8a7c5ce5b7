/*
 * How long the server waits for a worker that is no straggler: as long as nothing has come before,
 * and then usually came, and as workers take to answer. What is usual is the smoothed mean and four
 * times the deviation, as for timeouts (RFC 6298, section 2).
 *
 * It begins with the most, and is always from `least` to `most`; where they are equal nothing is
 * measured. However long one waiting was, it counts as twice the patience at most: what is usual
 * grows with several of them.
 */
#ifndef GW_CORE_PATIENCE_H
#define GW_CORE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct gw_patience {
    gw_time least;
    gw_time most;
    gw_time mean; /* 0: nothing is known */
    gw_time deviation;
    gw_time longest; /* between two results, since the last of `results` was 0 */
    uint32_t results;
};

/* What a server has by default, whose workers send again after `timeout`: who has lost a packet is
 * no straggler, so the most is twice that. */
static inline gw_time gw_patience_least(gw_time timeout)
{
    return timeout / 64 + 1;
}

static inline gw_time gw_patience_most(gw_time timeout)
{
    return 2 * timeout;
}

void gw_patience_init(struct gw_patience *patience, gw_time least, gw_time most);

/* Somebody was waited for so long, in vain or not. */
void gw_patience_note(struct gw_patience *patience, gw_time waited);

/* `count` results came at once, so long after the one before them; of `window` between two samples,
 * which is no less than `count`. */
void gw_patience_result(struct gw_patience *patience, gw_time waited, uint32_t count,
                        uint32_t window);

/* How long to wait. */
gw_time gw_patience_of(const struct gw_patience *patience);

#endif
