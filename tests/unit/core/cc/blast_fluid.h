/*
 * Blasts of several senders as a fluid through one link: in a period each gets as much of the link
 * as it offers of all that is offered.
 */
#ifndef GW_TESTS_BLAST_FLUID_H
#define GW_TESTS_BLAST_FLUID_H

#include "support.h"

#include "base/prng.h"
#include "core/cc/cc.h"

enum {
    SENDERS_MAX = 64,
    MTU = 1400,
    HDR = 60,
};

#define RATE_BPS UINT64_C(100000000000)
#define PERIOD   (200 * GW_US)

static const struct gw_path PATH = {
    .brtt = 85200 * GW_NS,
    .brtt_max = 85200 * GW_NS,
    .rate_bps = RATE_BPS,
    .bdp = 1065000,
    .mtu = MTU,
    .hdr = HDR,
    .hops = 4,
};

struct fluid {
    const struct gw_cc_ops *cc;
    union gw_algo_cfg cfg;
    struct sender {
        _Alignas(8) unsigned char state[GW_CC_STATE_MAX];
        struct gw_cc_window window;
    } senders[SENDERS_MAX];
    uint32_t count;
};

static inline void fluid_open(struct fluid *f, const char *name, uint32_t count)
{
    memset(f, 0, sizeof(*f));
    f->cc = (const struct gw_cc_ops *)gw_registry_find(&gw_cc_registry, name);
    assert_non_null(f->cc);
    gw_algo_defaults(&f->cc->algo, f->cfg.bytes);
    f->count = count;
    for (uint32_t i = 0; i < count; i++)
        f->cc->init(f->senders[i].state, f->cfg.bytes, &PATH, &f->senders[i].window, 0);
}

/* Wire bytes that the pace allows in a period. */
static inline uint64_t offered(const struct gw_cc_window *window)
{
    return (PERIOD << GW_BYTE_TIME_SHIFT) / window->pace;
}

static inline uint64_t line(void)
{
    return RATE_BPS / 8 * PERIOD / GW_S;
}

static inline uint64_t total_offered(const struct fluid *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->count; i++)
        sum += offered(&f->senders[i].window);
    return sum;
}

static inline void report(struct fluid *f, uint32_t i, uint64_t sent, uint64_t received)
{
    const struct gw_cc_report what = {.period = PERIOD, .sent = sent, .received = received};
    f->cc->on_report(f->senders[i].state, f->cfg.bytes, &PATH, &what, &f->senders[i].window, 0);
}

static inline void period(struct fluid *f)
{
    uint64_t sum = total_offered(f);
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t sent = offered(&f->senders[i].window);
        report(f, i, sent, sum > line() ? sent * line() / sum : sent);
    }
}

#endif
