/* Random options of announced bursts, for random scenarios. */
#ifndef GW_TESTS_RANDOM_PCN_H
#define GW_TESTS_RANDOM_PCN_H

#include <inttypes.h>
#include <stdio.h>

#include "base/time.h"
#include "swarm/draw.h"

/* Small tables are full at times, and little time is used up. */
static inline void gw_random_pcn_write(FILE *out, gw_time brtt, struct gw_prng *prng)
{
    fprintf(out, "pcn:\n  enable: yes\n  floor: %" PRIu64 "\n", gw_draw_log(prng, 1, 75));
    fprintf(out, "  jobs: %" PRIu64 "\n", gw_draw_log(prng, 1, 16));
    fprintf(out, "  announcements: %" PRIu64 "\n", gw_draw_log(prng, 1, 64));
    if (gw_draw_once_in(prng, 2))
        fprintf(out, "  share: 0.%03" PRIu64 "\n", gw_draw_between(prng, 0, 999));
    if (gw_draw_once_in(prng, 2))
        fprintf(out, "  hold: %" PRIu64 "ps\n", gw_draw_log(prng, brtt / 4, 16 * brtt));
    if (gw_draw_once_in(prng, 2))
        fprintf(out, "  save: %" PRIu64 "ps\n", gw_draw_log(prng, 1, 16 * brtt));
    if (gw_draw_once_in(prng, 4))
        fprintf(out, "  lead: %" PRIu64 "ps\n", gw_draw_log(prng, 1, 2 * brtt));
}

#endif
