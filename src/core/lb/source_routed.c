/*
 * Source routing: the sender spreads its packets over explicit paths in turn, in proportion to what
 * they can carry (DLCP, section 3.2.3, second option; XPath, ToN 2016).
 *
 * Which paths there are is the controller's business: struct gw_path_labels has them in the order
 * of use, weights included, and loses a path when that is withdrawn. Each cycle of a flow starts at
 * a random place in that order: flows that kept in step would meet at the same links for as long as
 * they last, and where a link is full the same one of them would lose each time. Where no
 * controller is, the flow walks over all labels.
 *
 * Invariant: a cycle uses each entry of the list once.
 */
#include "core/lb/lb.h"

struct source_routed {
    const struct gw_path_labels *paths; /* or NULL */
    uint32_t at;                        /* entry to use next */
    uint32_t left;                      /* entries that the cycle has not used */
    uint32_t count;                     /* entries of the cycle; the list may change meanwhile */
    struct gw_prng prng;
};

_Static_assert(sizeof(struct source_routed) <= GW_LB_STATE_MAX, "state fits");

static void source_routed_init(void *state, const void *config, const struct gw_path *path,
                               struct gw_prng prng)
{
    struct source_routed *flow = state;
    (void)config;
    *flow = (struct source_routed){.paths = path->labels, .prng = prng};
    if (!flow->paths)
        flow->at = gw_prng_below(&flow->prng, UINT32_C(1) << 16);
}

static uint16_t source_routed_pick(void *state, const void *config, const struct gw_lb_next *next,
                                   gw_time now)
{
    struct source_routed *flow = state;
    (void)config;
    (void)next;
    (void)now;
    if (!flow->paths || flow->paths->count == 0)
        return (uint16_t)flow->at++;
    if (flow->left == 0 || flow->count != flow->paths->count) {
        flow->left = flow->count = flow->paths->count;
        flow->at = gw_prng_below(&flow->prng, flow->left);
    }
    uint32_t at = flow->at < flow->paths->count ? flow->at : 0;
    flow->at = at + 1;
    flow->left--;
    return flow->paths->labels[at];
}

static void source_routed_on_ack(void *state, const void *config, const struct gw_lb_echo *echo,
                                 gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void source_routed_on_trim(void *state, const void *config, const struct gw_lb_echo *echo,
                                  gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void source_routed_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    (void)state;
    (void)config;
    (void)sent_at;
    (void)now;
}

const struct gw_lb_ops gw_lb_source_routed = {
    .algo =
        {
            .name = "source-routed",
            .summary = "explicit paths in turn, by their capacity",
            .source = "DLCP, section 3.2.3",
            .state_size = sizeof(struct source_routed),
        },
    .spread = GW_SPREAD_LABELS,
    .init = source_routed_init,
    .pick = source_routed_pick,
    .on_ack = source_routed_on_ack,
    .on_trim = source_routed_on_trim,
    .on_timeout = source_routed_on_timeout,
};
