/*
 * Rounds of one RTT, for load balancers that judge a whole window at once: how much of what came
 * back in a round was marked.
 *
 * A round ends with the first feedback on a packet that was sent after the round began, as with the
 * observation windows of DCTCP (RFC 8257, section 3.3); so it is never shorter than an RTT. Every
 * ACK counts alike, and a trimmed packet counts as a marked one.
 */
#ifndef GW_CORE_ROUND_H
#define GW_CORE_ROUND_H

#include "base/fixed.h"
#include "core/lb/lb.h"

struct gw_lb_round {
    gw_time since;
    uint32_t packets; /* heard of in this round */
    uint32_t marked;  /* of those */
    bool has_begun;   /* the first feedback of a flow begins its first round */
};

/*
 * Takes feedback into account. True when it ends the round: then *share is the marked part of the
 * round, and the next one begins.
 */
static inline bool gw_lb_round_ends(struct gw_lb_round *round, const struct gw_lb_echo *echo,
                                    bool marked, gw_time now, gw_q16 *share)
{
    if (!round->has_begun)
        *round = (struct gw_lb_round){.since = now, .has_begun = true};
    round->packets++;
    round->marked += marked;
    gw_time sent_at = now - echo->rtt;
    if (gw_time_before(sent_at, round->since))
        return false;
    *share = (gw_q16)round->marked * GW_Q16_ONE / round->packets;
    *round = (struct gw_lb_round){.since = now, .has_begun = true};
    return true;
}

#endif
