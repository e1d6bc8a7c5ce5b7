/* Random options of what messages and gradients are worth; see random_worth.h. */
#include "swarm/random_worth.h"

#include <inttypes.h>

#include "support.h"
#include "swarm/draw.h"

/* What messages can do without, and what they are worth: half of the entries say something. */
bool gw_random_worth_message(FILE *out, const char *name, struct gw_prng *prng)
{
    static const char *const names[] = {"bound", "important", "class"};
    uint32_t i = 0;
    while (i < GW_COUNT_OF(names) && strcmp(name, names[i]) != 0)
        i++;
    if (i == GW_COUNT_OF(names))
        return false;
    if (gw_draw_once_in(prng, 2))
        return true;
    if (strcmp(name, "class") == 0)
        fprintf(out, "    class: %" PRIu64 "\n", gw_draw_between(prng, 0, 6));
    else
        fprintf(out, "    %s: 0.%03" PRIu64 "\n", name, gw_draw_log(prng, 1, 999));
    return true;
}

/* What gradients that travel as messages can do without, and what they are worth. */
void gw_random_worth_job(FILE *out, bool may_lose, struct gw_prng *prng)
{
    static const char *const rules[] = {"median-of-means", "median-of-values", "all", "none"};
    if (may_lose && gw_draw_once_in(prng, 2))
        fprintf(out, "    bound: 0.%03" PRIu64 "\n", gw_draw_log(prng, 1, 999));
    if (may_lose && gw_draw_once_in(prng, 2))
        fprintf(out, "    bound_pull: 0.%03" PRIu64 "\n", gw_draw_log(prng, 1, 999));
    fprintf(out, "    owner: %s\n    priority: %s\n    classes: %" PRIu64 "\n",
            gw_draw_once_in(prng, 2) ? "random" : "turn",
            gw_draw_once_in(prng, 2) ? "layer" : "none", gw_draw_between(prng, 1, 7));
    uint64_t rule = gw_prng_below(prng, GW_COUNT_OF(rules));
    uint64_t spread = gw_draw_between(prng, 0, 4);
    bool tells_apart = rule < 2, goes_first = gw_draw_once_in(prng, 2);
    fprintf(out, "    importance: %s\n    spread: %" PRIu64 "\n    important_first: %s\n",
            rules[rule], spread, tells_apart && goes_first ? "yes" : "no");
}

/* How late a worker must be to be left out is about as long as a round trip, or as measured. A
 * server whose patience is fixed far below it asks far too often. */
void gw_random_worth_sum(FILE *out, gw_time brtt, struct gw_prng *prng)
{
    if (gw_draw_once_in(prng, 2))
        return;
    fprintf(out, "    bound: 0.%03" PRIu64 "\n", gw_draw_log(prng, 1, 999));
    if (gw_draw_once_in(prng, 2))
        fprintf(out, "    patience: %" PRIu64 "ps\n", gw_draw_log(prng, brtt / 16 + 1, 16 * brtt));
}
