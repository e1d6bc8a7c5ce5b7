/*
 * A message has ended when at most a part of it is missing (DLCP, section 3.2.1): a bound per
 * message, in packets, of which the last does not count (finish.h).
 *
 * Invariant: of a message that has ended, at most `bound` is missing, counted in packets and in
 * bytes; with 0 it is complete.
 */
#include "core/finish/finish.h"

#include <string.h>

struct bound_cfg {
    gw_q16 bound;
    bool both;
};

_Static_assert(sizeof(struct bound_cfg) <= GW_FINISH_CFG_MAX, "options fit");

static bool bound_is_enough(const void *config, const struct gw_finish_sample *sample)
{
    const struct bound_cfg *cfg = config;
    gw_q16 bound = cfg->both && sample->bound >= GW_Q16_ONE ? 0 : cfg->bound;
    return gw_finish_bound_allows(bound, sample->total, sample->total - sample->arrived);
}

static const struct gw_param params[] = {
    GW_PARAM(struct bound_cfg, Q16, bound, "0.1",
             "largest part that may be missing, 0 to 1 (DLCP, section 5.1.1)", .most = GW_Q16_ONE),
    GW_PARAM(
        struct bound_cfg, BOOL, both, "no",
        "only of a message whose sender has named a bound, too (own: who names none wants all)"),
};

const struct gw_finish_ops gw_finish_bound = {
    .algo =
        {
            .name = "bound",
            .summary = "all but a part of the message",
            .source = "DLCP, section 3.2.1",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct bound_cfg),
        },
    .is_enough = bound_is_enough,
};

static struct gw_finish finish_of(const struct bound_cfg *cfg)
{
    struct gw_finish finish = {.ops = &gw_finish_bound};
    memcpy(finish.cfg.bytes, cfg, sizeof(*cfg));
    return finish;
}

struct gw_finish gw_finish_within(gw_q16 bound)
{
    return finish_of(&(struct bound_cfg){.bound = bound});
}

struct gw_finish gw_finish_within_both(gw_q16 bound)
{
    return finish_of(&(struct bound_cfg){.bound = bound, .both = true});
}
