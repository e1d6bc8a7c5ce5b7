/*
 * One flow's congestion control by direct calls, for tests: options, feedback and a clock that the
 * test turns. Private state stays private; a test sees the window and the pace.
 */
#ifndef GW_TESTS_CC_FIXTURE_H
#define GW_TESTS_CC_FIXTURE_H

#include "support.h"

#include "base/prng.h"
#include "core/cc/cc.h"

enum {
    MTU = 4096,
    HDR = 64,
    BDP = 150000, /* the reference bdp, for which gains are given */
};

#define BRTT (12 * GW_US)

struct flow {
    const struct gw_cc_ops *ops;
    _Alignas(8) unsigned char state[GW_CC_STATE_MAX];
    union gw_algo_cfg cfg;
    struct gw_path path;
    struct gw_cc_window window;
    gw_time now; /* handed to every call */
};

/* A flow with default options: change them and the path, then call flow_start(). */
static inline struct flow flow_make(const char *name)
{
    struct flow f = {
        .ops = (const void *)gw_registry_find(&gw_cc_registry, name),
        .path = {.brtt = BRTT,
                 .brtt_max = BRTT,
                 .rate_bps = UINT64_C(100000000000),
                 .bdp = BDP,
                 .mtu = MTU,
                 .hdr = HDR,
                 .hops = 6,
                 .trims = true},
        .now = GW_US,
    };
    assert_non_null(f.ops);
    gw_algo_defaults(&f.ops->algo, &f.cfg);
    return f;
}

static inline void flow_set(struct flow *f, const char *name, const char *text)
{
    assert_int_equal(gw_algo_set(&f->ops->algo, &f->cfg, name, text), 0);
}

static inline void flow_preset(struct flow *f, const char *name)
{
    assert_int_equal(gw_algo_preset(&f->ops->algo, &f->cfg, name), 0);
}

static inline void flow_start(struct flow *f)
{
    memset(f->state, 0, sizeof(f->state));
    f->ops->init(f->state, &f->cfg, &f->path, &f->window, f->now);
}

/* Returns by how much the window changed, in bytes. */
static inline int64_t flow_ack_with(struct flow *f, const struct gw_cc_ack *ack)
{
    uint64_t before = f->window.cwnd;
    f->ops->on_ack(f->state, &f->cfg, &f->path, ack, &f->window, f->now);
    return (int64_t)(f->window.cwnd - before);
}

static inline int64_t flow_ack(struct flow *f, gw_time rtt, bool ce)
{
    return flow_ack_with(
        f, &(struct gw_cc_ack){.bytes = MTU, .in_flight = 10 * MTU, .rtt = rtt, .ce = ce});
}

static inline int64_t flow_lose(struct flow *f, bool trimmed, uint32_t in_flight)
{
    struct gw_cc_loss loss = {.bytes = MTU, .in_flight = in_flight, .trimmed = trimmed};
    uint64_t before = f->window.cwnd;
    f->ops->on_loss(f->state, &f->cfg, &f->path, &loss, &f->window, f->now);
    return (int64_t)(f->window.cwnd - before);
}

static inline bool is_close(double a, double b, double tolerance)
{
    return a - b <= tolerance && b - a <= tolerance;
}

#endif
