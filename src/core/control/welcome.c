/* What a WELCOME says; see welcome.h. */
#include "core/control/welcome.h"

#include <string.h>

#include "core/aggregation/agg_index.h"
#include "core/quant/scale.h"

/* Whether all is within what the protocol knows; world, position, hashing, aggregators, window and
 * notice are, whatever their bits say. */
static bool is_known(const struct gw_welcome *welcome, const uint32_t word[3])
{
    const struct gw_job_terms *terms = &welcome->terms;
    uint32_t same[3];
    gw_job_terms_pack(terms, same);
    return welcome->epoch != 0 && gw_scale_exists(welcome->scale_exponent) &&
           terms->rank < terms->world && terms->values >= 1 && terms->level < GW_LEVELS_MAX &&
           terms->indexing <= GW_AGG_INDEX_STATIC &&
           memcmp(same, word, sizeof(same)) == 0; /* the bits that are always 0 */
}

static bool is_within(const struct gw_job_terms *terms, const struct gw_welcome_limits *limits)
{
    return (!limits->world || terms->world == limits->world) &&
           (!limits->values_max || terms->values <= limits->values_max) &&
           (!limits->window_max || terms->window < limits->window_max); /* it is 1 less */
}

enum gw_welcome_verdict gw_welcome_read(struct gw_welcome *welcome, const struct gw_pkt *pkt,
                                        const struct gw_welcome_limits *limits, uint16_t rank)
{
    *welcome = (struct gw_welcome){
        .epoch = pkt->epoch,
        .share = pkt->index,
        .scale_exponent = (int8_t)pkt->scale,
        .first_seq = pkt->seq,
        .terms = gw_job_terms_unpack(pkt->job.word),
    };
    if (!is_known(welcome, pkt->job.word) || (rank != GW_RANK_NONE && welcome->terms.rank != rank))
        return GW_WELCOME_MALFORMED;
    return is_within(&welcome->terms, limits) ? GW_WELCOME_POSSIBLE : GW_WELCOME_BEYOND;
}

bool gw_welcome_agrees(const struct gw_welcome *made, const struct gw_welcome *welcome)
{
    return made->terms.world == welcome->terms.world &&
           made->terms.values == welcome->terms.values &&
           made->terms.window == welcome->terms.window &&
           made->scale_exponent == welcome->scale_exponent;
}
