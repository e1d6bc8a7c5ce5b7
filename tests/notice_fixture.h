/*
 * The stage of notices by itself: bursts are announced to it and begin, its books are checked after
 * every step, and what it says of thresholds is followed.
 */
#ifndef GW_TESTS_NOTICE_FIXTURE_H
#define GW_TESTS_NOTICE_FIXTURE_H

#include "support.h"

#include "core/switch/switch_notice.h"

enum {
    GW_TEST_NOTICE_PORTS = 4,
    GW_TEST_NOTICE_PACKET = 1500,
};

#define GW_TEST_NOTICE_RTT (100 * GW_US)

struct gw_test_notice {
    struct gw_switch_notice_cfg cfg;
    struct gw_switch_notice *stage;
    uint32_t bytes[GW_TEST_NOTICE_PORTS]; /* thresholds, as changes say */
    gw_time now;
};

/* A burst: gradients of a job, if the flow is the job. */
struct gw_test_burst {
    uint16_t in;
    uint16_t out;
    uint32_t src;
    uint32_t flow;
    uint32_t job;
    uint8_t units;
};

/* Defaults: floor of 5 packets, 4 RTT, 25 %, 16 RTT. */
static inline struct gw_switch_notice_cfg gw_test_notice_cfg(void)
{
    return (struct gw_switch_notice_cfg){
        .packet = GW_TEST_NOTICE_PACKET,
        .floor = 5,
        .hold = 4 * GW_TEST_NOTICE_RTT,
        .share = GW_Q16_ONE / 4,
        .save = 16 * GW_TEST_NOTICE_RTT,
        .jobs_max = 8,
        .announcements_max = 64,
    };
}

static inline void gw_test_notice_open(struct gw_test_notice *f,
                                       const struct gw_switch_notice_cfg *cfg)
{
    f->cfg = *cfg;
    void *memory = gw_test_take(gw_switch_notice_size(cfg, GW_TEST_NOTICE_PORTS));
    f->stage = gw_switch_notice_init(memory, cfg, GW_TEST_NOTICE_PORTS, 1);
    for (uint16_t port = 0; port < GW_TEST_NOTICE_PORTS; port++)
        f->bytes[port] = UINT32_MAX;
    f->now = GW_TIME_NEVER - 50 * GW_TEST_NOTICE_RTT; /* the clock wraps soon */
}

static inline void gw_test_notice_close(struct gw_test_notice *f)
{
    free(f->stage);
}

/* Follows the changes: a port is told of each, and of nothing else. */
static inline void gw_test_notice_settle(struct gw_test_notice *f)
{
    struct gw_switch_notice_change change;
    while (gw_switch_notice_next(f->stage, &change))
        f->bytes[change.port] = change.bytes;
    gw_switch_notice_check(f->stage);
    for (uint16_t port = 0; port < GW_TEST_NOTICE_PORTS; port++) {
        assert_int_equal(f->bytes[port], gw_switch_notice_threshold(f->stage, port));
        bool is_own = f->bytes[port] == UINT32_MAX;
        assert_int_equal(is_own, gw_switch_notice_open(f->stage, port) == 0);
    }
}

/* Lets time pass; announcements expire when they say. */
static inline void gw_test_notice_pass(struct gw_test_notice *f, gw_time time)
{
    gw_time until = gw_time_add(f->now, time);
    for (;;) {
        gw_time deadline = gw_switch_notice_deadline(f->stage);
        if (!gw_deadline_before(deadline, until))
            break;
        if (gw_time_before(f->now, deadline))
            f->now = deadline;
        gw_switch_notice_expire(f->stage, f->now);
        gw_test_notice_settle(f);
    }
    f->now = until;
    gw_switch_notice_expire(f->stage, f->now);
    gw_test_notice_settle(f);
}

static inline struct gw_pkt gw_test_notice_pkt(const struct gw_test_burst *burst, uint8_t kind)
{
    struct gw_pkt pkt = {
        .q = {.size = 100, .kind = kind},
        .src = burst->src,
        .dst = 1000 + burst->src % 7,
        .flow = burst->flow,
        .buf = GW_BUF_NONE,
    };
    if (kind == GW_PKT_NOTICE) {
        pkt.notice.job = burst->job;
        pkt.notice.units = burst->units;
    } else {
        pkt.q.flags = GW_PKT_HEAD;
    }
    return pkt;
}

static inline void gw_test_notice_announce(struct gw_test_notice *f,
                                           const struct gw_test_burst *burst)
{
    struct gw_switch_hop hop = {.in = burst->in, .out = burst->out};
    struct gw_pkt pkt = gw_test_notice_pkt(burst, GW_PKT_NOTICE);
    gw_switch_notice_announce(f->stage, &hop, &pkt, f->now);
    gw_test_notice_settle(f);
}

/* The head of a burst, or of the sum of several. */
static inline void gw_test_notice_head(struct gw_test_notice *f, const struct gw_test_burst *burst,
                                       uint32_t workers)
{
    struct gw_switch_hop hop = {.in = burst->in, .out = burst->out};
    struct gw_pkt pkt = gw_test_notice_pkt(burst, GW_PKT_GRAD);
    gw_switch_notice_head(f->stage, &hop, &pkt, workers, f->now);
    gw_test_notice_settle(f);
}

static inline struct gw_switch_notice_stats gw_test_notice_stats(const struct gw_test_notice *f,
                                                                 uint16_t port)
{
    return gw_switch_notice_stats(f->stage, port, f->now);
}

#endif
