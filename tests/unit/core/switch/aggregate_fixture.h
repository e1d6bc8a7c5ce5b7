/* An aggregation stage of a switch alone, and packets for it. */
#ifndef GW_TESTS_AGGREGATE_FIXTURE_H
#define GW_TESTS_AGGREGATE_FIXTURE_H

#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "core/switch/aggregate.h"

enum {
    JOB = 5,
    EPOCH = 2,
    VALUES = 4,
    PKTS = 64,
    AGGREGATORS = 8,
    SEQ = 100,
    INDEX = 3,
};

#define LEAK GW_MS

struct stage {
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_aggregate *aggregate;
};

static inline void install_by(struct stage *s, uint32_t job, uint16_t epoch, uint8_t level,
                              uint8_t fan_in, enum gw_agg_partials partials)
{
    static const uint32_t members[] = {11, 12, 13};
    struct gw_aggregate_job entry = {.job = job,
                                     .epoch = epoch,
                                     .level = level,
                                     .fan_in = fan_in,
                                     .partials = partials,
                                     .member_count = GW_COUNT_OF(members),
                                     .members = members};
    assert_int_equal(gw_aggregate_install(s->aggregate, &entry), 0);
}

static inline void install(struct stage *s, uint32_t job, uint16_t epoch, uint8_t level,
                           uint8_t fan_in)
{
    install_by(s, job, epoch, level, fan_in, GW_AGG_PARTIALS_KEEP);
}

static inline void stage_make(struct stage *s, uint32_t share, enum gw_agg_reclaim reclaim)
{
    gw_test_pool_open(&s->pool, &s->bufs, PKTS, 4 * VALUES);
    struct gw_aggregate_cfg cfg = {.aggregators = AGGREGATORS,
                                   .jobs_max = 3,
                                   .tenants = {.keys = {0, 1}, .count = 2},
                                   .members_max = 9,
                                   .share = share,
                                   .leak = LEAK,
                                   .reclaim = reclaim,
                                   .kernels = gw_kernels_best(gw_cpu_features()),
                                   .pool = &s->pool};
    s->aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&cfg)), &cfg);
}

/* The rules of the stage and its job are those of the paper, or 0. */
static inline void stage_open_with(struct stage *s, uint8_t level, uint8_t fan_in,
                                   enum gw_agg_reclaim reclaim)
{
    stage_make(s, AGGREGATORS / 3, reclaim); /* 2 of 8 */
    install(s, JOB, EPOCH, level, fan_in);
}

static inline void stage_open(struct stage *s, uint8_t level, uint8_t fan_in)
{
    stage_open_with(s, level, fan_in, GW_AGG_RECLAIM_SWEEP);
}

/* Nothing may be missing. */
static inline void stage_close(struct stage *s)
{
    gw_aggregate_remove(s->aggregate, JOB);
    assert_int_equal(gw_aggregate_taken(s->aggregate), 0);
    gw_test_pool_close(&s->pool);
    free(s->aggregate);
}

/* A worker's packet; every value is `value`. */
static inline struct gw_pkt *gradient(struct stage *s, uint32_t bitmap, int32_t value)
{
    struct gw_pkt *pkt = gw_pkt_claim(&s->pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.kind = GW_PKT_GRAD, .ecn = GW_ECN_ECT0},
        .flow = JOB,
        .epoch = EPOCH,
        .scale = 255,
        .seq = SEQ,
        .index = INDEX,
        .buf = gw_buf_claim(&s->bufs),
        .agg = {.bitmap = bitmap, .values = VALUES},
    };
    for (uint32_t i = 0; i < VALUES; i++)
        memcpy(gw_buf_bytes(&s->bufs, pkt->buf) + 4 * (size_t)i, &value, 4);
    return pkt;
}

static inline struct gw_pkt *resend(struct stage *s, uint32_t bitmap, int32_t value)
{
    struct gw_pkt *pkt = gradient(s, bitmap, value);
    pkt->agg_flags = GW_AGG_RESEND;
    return pkt;
}

static inline bool feed(struct stage *s, struct gw_pkt *pkt)
{
    return gw_aggregate_gradient(s->aggregate, pkt, 0);
}

static inline int32_t value_of(const struct stage *s, const struct gw_pkt *pkt)
{
    int32_t value;
    memcpy(&value, gw_buf_bytes(&s->bufs, pkt->buf) + 4 * (VALUES - 1), 4);
    return value;
}

static inline void result(struct stage *s, uint32_t seq, uint8_t flags, gw_time now)
{
    struct gw_pkt pkt = {
        .flow = JOB, .epoch = EPOCH, .seq = seq, .index = INDEX, .agg_flags = flags};
    gw_aggregate_parameter(s->aggregate, &pkt, now);
}

static inline void expect_passed(struct stage *s, struct gw_pkt *pkt, uint32_t bitmap,
                                 uint8_t flags, int32_t value)
{
    assert_true(feed(s, pkt));
    assert_int_equal(pkt->agg.bitmap, bitmap);
    assert_int_equal(pkt->agg_flags, flags);
    assert_int_equal(value_of(s, pkt), value);
    gw_pkt_release(&s->pool, pkt);
}

#endif
