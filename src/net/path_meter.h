/*
 * What a process measures of its paths: round trips of questions and answers, and the rate at which
 * bytes pass. Samples and times in, estimates out; whoever owns the clock and the counters calls.
 *
 * The least round trip and the largest rate are those of the last 10 to 20 s: a queue, a busy
 * machine or a pause hides what a path can do, but not for so long, and a path that has changed is
 * found out by then. So a rate is a lower bound of what the path carries: traffic that never filled
 * it says little, and callers have a floor for that.
 */
#ifndef GW_NET_PATH_METER_H
#define GW_NET_PATH_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define GW_PATH_METER_WINDOW (10 * GW_S)

/* A rate is taken over at least so long: many round trips, so that what is under way at its ends
 * counts little. */
#define GW_PATH_METER_SPAN (100 * GW_MS)

/* All zero: nothing is known. */
struct gw_rtt_meter {
    gw_time smoothed;  /* of all samples, the latest 1/8 (RFC 6298); 0: none yet */
    gw_time least[2];  /* in this window and the one before; 0: none */
    gw_time window_at; /* beginning of this window */
};

void gw_rtt_meter_take(struct gw_rtt_meter *meter, gw_time rtt, gw_time now);

/* The least round trip lately, at least 1 ps; 0: none was measured. */
gw_time gw_rtt_meter_least(const struct gw_rtt_meter *meter);

/* All zero: nothing is known. */
struct gw_rate_meter {
    bool has_begun;
    uint64_t bytes; /* as counted at `since` */
    gw_time since;
    uint64_t most_bps[2]; /* in this window and the one before; 0: none */
    gw_time window_at;
};

/* `bytes` have passed since the beginning of all times; to be called often, and harmless more
 * often.
 */
void gw_rate_meter_take(struct gw_rate_meter *meter, uint64_t bytes, gw_time now);

/* The largest rate lately; 0: none was measured. */
uint64_t gw_rate_meter_most(const struct gw_rate_meter *meter);

#endif
