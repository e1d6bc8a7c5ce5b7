/*
 * Micro benchmarks of in-network aggregation: the switch's stages, per fragment of 352 values, with
 * their working set in cache. Eight workers; seven fragments are consumed, the eighth leaves with
 * the sum. Then a result frees the aggregator; in slots, the next fragment takes the other version.
 */
#include "micro.h"

#include "base/cpu.h"
#include "core/switch/aggregate.h"
#include "core/switch/slots.h"

enum {
    WORKERS = 8,
    VALUES = 352,
    WINDOW = 16, /* fragments in turn: their sums stay in the first-level caches */
    AGGREGATORS = 64,
    PKTS = 64,
    JOB = 1,
    EPOCH = 1,
};

struct aggregate_bench {
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_aggregate *aggregate;
    struct gw_slots *slots;
    uint32_t seq;
};

static struct gw_pkt *fragment(struct aggregate_bench *b, uint32_t worker)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
    GW_ASSERT(pkt);
    uint32_t buf = gw_buf_claim(&b->bufs);
    *pkt = (struct gw_pkt){.q = {.kind = GW_PKT_GRAD},
                           .flow = JOB,
                           .epoch = EPOCH,
                           .seq = b->seq,
                           .index = (uint16_t)(b->seq % WINDOW),
                           .buf = buf,
                           .agg = {.bitmap = UINT32_C(1) << worker, .values = VALUES}};
    return pkt;
}

static void aggregate_run(void *state, uint64_t count)
{
    struct aggregate_bench *b = state;
    for (uint64_t done = 0; done < count; done += WORKERS, b->seq++) {
        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            struct gw_pkt *pkt = fragment(b, worker);
            if (!gw_aggregate_gradient(b->aggregate, pkt, 0))
                continue;
            GW_ASSERT(worker + 1 == WORKERS);
            gw_aggregate_parameter(b->aggregate, pkt, 0);
            gw_bench_sink += gw_buf_bytes(&b->bufs, pkt->buf)[0];
            gw_pkt_release(&b->pool, pkt);
        }
    }
}

static void slots_run(void *state, uint64_t count)
{
    struct aggregate_bench *b = state;
    const uint32_t *dsts;
    for (uint64_t done = 0; done < count; done += WORKERS, b->seq++) {
        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            struct gw_pkt *pkt = fragment(b, worker);
            pkt->agg_flags = GW_AGG_SLOT;
            pkt->agg.level = b->seq / WINDOW & 1;
            if (gw_slots_gradient(b->slots, pkt, &dsts) == 0)
                continue;
            GW_ASSERT(worker + 1 == WORKERS);
            gw_bench_sink += gw_buf_bytes(&b->bufs, pkt->buf)[0];
            gw_pkt_release(&b->pool, pkt);
        }
    }
}

static struct aggregate_bench *bench_open(void)
{
    struct aggregate_bench *b = gw_bench_take(sizeof(*b));
    gw_buf_pool_init(&b->bufs, gw_bench_take(gw_buf_pool_size(PKTS, 4 * VALUES)), PKTS, 4 * VALUES);
    gw_pkt_pool_init(&b->pool, gw_bench_take(PKTS * sizeof(struct gw_pkt)), 0, PKTS, &b->bufs);
    return b;
}

static const uint32_t members[WORKERS];

static void add_slots(struct gw_bench_suite *suite)
{
    struct aggregate_bench *b = bench_open();
    struct gw_slots_cfg cfg = {
        .slots = WINDOW,
        .jobs_max = 1,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = &b->pool,
    };
    b->slots = gw_slots_init(gw_bench_take(gw_slots_size(&cfg)), &cfg);
    struct gw_slots_job job = {
        .job = JOB,
        .epoch = EPOCH,
        .world = WORKERS,
        .count = WINDOW,
        .members = members,
    };
    int error = gw_slots_install(b->slots, &job);
    GW_ASSERT(error == 0);
    gw_bench_add(suite, "aggregate in slots, 352 values", slots_run, b);
}

struct gw_aggregate *gw_bench_aggregate(struct gw_pkt_pool *pool, uint32_t aggregators,
                                        const struct gw_aggregate_job *job)
{
    struct gw_aggregate_cfg cfg = {
        .aggregators = aggregators,
        .jobs_max = 1,
        .members_max = job->member_count,
        .leak = GW_S,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = pool,
    };
    struct gw_aggregate *aggregate =
        gw_aggregate_init(gw_bench_take(gw_aggregate_size(&cfg)), &cfg);
    int error = gw_aggregate_install(aggregate, job);
    GW_ASSERT(error == 0);
    return aggregate;
}

void gw_bench_add_aggregate(struct gw_bench_suite *suite)
{
    struct aggregate_bench *b = bench_open();
    struct gw_aggregate_job job = {
        .job = JOB,
        .epoch = EPOCH,
        .fan_in = WORKERS,
        .member_count = WORKERS,
        .members = members,
    };
    b->aggregate = gw_bench_aggregate(&b->pool, AGGREGATORS, &job);
    gw_bench_add(suite, "aggregate, 352 values", aggregate_run, b);
    add_slots(suite);
}
