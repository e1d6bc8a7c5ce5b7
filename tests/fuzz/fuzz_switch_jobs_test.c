/*
 * Fuzz target: a switch with an aggregation stage, fed with any packets of job control, and with
 * gradients and parameters of the jobs that these make, at any time.
 *
 * The input is a program of small steps. Properties: no crash, no packet is lost or freed twice,
 * each packet of job control leaves once or is counted, what leaves survives the codec, and what is
 * active in the stage is possible and does not change within an epoch of one life of its server.
 */
#include "fuzz/replay.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "core/codec.h"
#include "core/job.h"

enum {
    HOSTS = 4, /* 0 and 1 are servers too; 3 is behind two ports */
    PORTS = 5,
    ADDRESS = 9,
    JOBS = 4, /* numbers that packets may name */
    JOBS_MAX = 3,
    MEMBERS_MAX = 40,
    AGGREGATORS = 2,
    HDR = 52,
    PKTS = 64,
    STORAGE = 32768,
};

#define COOKIE UINT64_C(0x0123456789abcdef)

static const struct gw_codec codec = {.cookie = COOKIE};

/* How far the runs got; a target that reaches nothing tests nothing. */
static uint64_t total_active, total_taken, total_room, total_malformed, total_idle, total_sums;

/* A job as it was when it became active. */
struct snapshot {
    struct gw_aggregate_job job;
    uint32_t members[GW_FAN_IN_MAX];
    uint16_t workers[GW_FAN_IN_MAX];
    uint32_t life;
    bool is_active;
};

struct fuzz {
    struct gw_pkt_pool pool;
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_aggregate *aggregate;
    struct snapshot snapshots[JOBS];
    gw_time now;
    struct gw_test_steps steps;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

static struct gw_pkt *claim(struct fuzz *f)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    GW_ASSERT(pkt != NULL);
    return pkt;
}

/* What leaves survives the way through bytes, to the last of its own. */
static void check_codec(const struct gw_pkt *pkt)
{
    struct gw_pkt decoded = {.q.next = pkt->q.next};
    struct gw_frame frame;
    gw_codec_encode(&codec, pkt, &frame);
    GW_ASSERT(gw_codec_decode(&codec, &frame, 0, &decoded) == 0);
    decoded.q.size = pkt->q.size;
    decoded.q.rank = pkt->q.rank;
    GW_ASSERT(memcmp(&decoded, pkt, sizeof(decoded)) == 0);
}

static void check_answer(const struct gw_pkt *pkt)
{
    GW_ASSERT(pkt->seq <= GW_FAN_IN_MAX && pkt->dst < HOSTS);
    GW_ASSERT(pkt->index == GW_JOB_OK || pkt->index == GW_JOB_TAKEN || pkt->index == GW_JOB_ROOM);
    total_taken += pkt->index == GW_JOB_TAKEN;
    total_room += pkt->index == GW_JOB_ROOM;
}

/* Lets everything leave; returns how many packets of job control there were. */
static uint32_t output(struct fuzz *f)
{
    uint32_t count = 0;
    for (uint16_t i = 0; i < f->node->ready_count; i++) {
        struct gw_pkt *pkt;
        while (gw_node_output(f->node, f->node->ready[i], &pkt, 1, f->now) & ~GW_OUTPUT_MORE) {
            check_codec(pkt);
            count += pkt->q.kind == GW_PKT_JOB;
            if (pkt->q.kind == GW_PKT_JOB && pkt->src == ADDRESS)
                check_answer(pkt);
            gw_pkt_release(&f->pool, pkt);
        }
    }
    f->node->ready_count = 0;
    return count;
}

static bool is_same(const struct snapshot *a, const struct snapshot *b)
{
    return a->job.level == b->job.level && a->job.fan_in == b->job.fan_in &&
           memcmp(a->job.above, b->job.above, sizeof(a->job.above)) == 0 &&
           a->job.member_count == b->job.member_count &&
           memcmp(a->members, b->members, sizeof(a->members)) == 0 &&
           memcmp(a->workers, b->workers, sizeof(a->workers)) == 0;
}

/* Looks at what is active now; `life` is that of the packet that the last step brought. */
static void check_job(struct fuzz *f, uint32_t number, uint32_t life)
{
    struct snapshot *before = &f->snapshots[number];
    const struct gw_aggregate_job *job = gw_aggregate_job(f->aggregate, number);
    if (!job) {
        before->is_active = false;
        return;
    }
    GW_ASSERT(job->level < GW_LEVELS_MAX && job->fan_in >= 1);
    GW_ASSERT(job->fan_in <= job->member_count && job->member_count <= GW_FAN_IN_MAX);
    GW_ASSERT(job->above[0] < GW_FAN_IN_MAX && job->above[1] < GW_FAN_IN_MAX && job->epoch != 0);
    struct snapshot now = {.job = *job, .is_active = true, .life = life};
    memcpy(now.members, job->members, job->member_count * sizeof(*job->members));
    memcpy(now.workers, job->workers, job->fan_in * sizeof(*job->workers));
    for (uint32_t i = 0; i < job->fan_in; i++)
        GW_ASSERT(job->workers[i] >= 1 && job->workers[i] <= GW_WORLD_MAX);
    if (before->is_active && before->job.epoch == job->epoch && before->life == life)
        GW_ASSERT(is_same(before, &now));
    else
        total_active++;
    *before = now;
}

static void feed(struct fuzz *f, struct gw_pkt *pkt)
{
    bool is_job = pkt->q.kind == GW_PKT_JOB;
    bool is_install = is_job && pkt->agg_flags == GW_JOB_INSTALL && pkt->job.word[2] == ADDRESS;
    uint32_t number = pkt->flow, life = pkt->key;
    const struct gw_switch_stats *stats = gw_switch_stats(f->sw);
    uint64_t dropped = stats->malformed + stats->unroutable;
    gw_node_input(f->node, 0, &pkt, 1, f->now);
    dropped = stats->malformed + stats->unroutable - dropped;
    GW_ASSERT(output(f) + (is_job ? dropped : 0) == is_job);
    for (uint32_t i = 0; i < JOBS; i++)
        check_job(f, i, is_install && i == number && !dropped ? life : f->snapshots[i].life);
}

static void input_datagram(struct fuzz *f)
{
    struct gw_frame frame = {.tos = take8(f), .entropy = take8(f)};
    struct gw_pkt *pkt = claim(f);
    frame.length = take8(f);
    uint32_t hdr_size = frame.length < GW_WIRE_HDR_MAX ? frame.length : GW_WIRE_HDR_MAX;
    for (uint32_t i = 0; i < hdr_size; i++)
        frame.hdr[i] = take8(f);
    if (gw_codec_decode(&codec, &frame, f->now, pkt) == 0) {
        feed(f, pkt);
    } else {
        pkt->buf = GW_BUF_NONE;
        gw_pkt_release(&f->pool, pkt);
    }
}

/* A packet whose identity is one of few, so that packets of one job meet. */
static struct gw_pkt *claim_pkt(struct fuzz *f, enum gw_pkt_kind kind)
{
    struct gw_pkt *pkt = claim(f);
    uint8_t who = take8(f);
    *pkt = (struct gw_pkt){
        .q = {.size = HDR, .class = GW_CLASS_CONTROL, .kind = (uint8_t)kind},
        .src = who & 1,
        .dst = who >> 1 & 3,
        .flow = who >> 3 & 3,
        .key = who >> 5 & 3,
        .epoch = take8(f),
        .buf = GW_BUF_NONE,
    };
    pkt->q.key = gw_flow_key(pkt->src, pkt->dst, pkt->flow);
    return pkt;
}

/* The worker that `pkt` names says that it asks whoever sent it. */
static void ask(struct fuzz *f, const struct gw_pkt *pkt)
{
    struct gw_pkt *asks = claim(f);
    *asks = *pkt;
    asks->src = pkt->job.word[0];
    asks->dst = pkt->src;
    asks->agg_flags = GW_JOB_READY;
    asks->q.key = gw_flow_key(asks->src, asks->dst, asks->flow);
    feed(f, asks);
}

static void input_job(struct fuzz *f)
{
    /* Workers behind a position; the last three are impossible. */
    static const uint16_t counts[] = {1, 2, 7, 32, GW_WORLD_MAX, GW_WORLD_MAX + 1, 2047, 0};
    struct gw_pkt *pkt = claim_pkt(f, GW_PKT_JOB);
    uint8_t op = take8(f);
    pkt->agg_flags = op % 16 < GW_JOB_OPS ? op % 16 : GW_JOB_INSTALL;
    pkt->q.flags = pkt->agg_flags == GW_JOB_JOIN ? (uint8_t)(op << GW_JOB_OPTION_SHIFT) : 0;
    pkt->job.word[2] = op & 128 ? take8(f) : ADDRESS;
    pkt->seq = take8(f);
    pkt->index = take8(f);
    pkt->scale = take8(f);
    pkt->job.word[0] = take8(f) % HOSTS;
    uint8_t level = take8(f), fan_in = take8(f), above = take8(f);
    struct gw_job_spot spot = {
        .level = level & 3, .fan_in = fan_in & 63, .above = {above & 31, take8(f) & 31}};
    uint32_t count = pkt->index < spot.fan_in ? counts[above >> 5] : above >> 5;
    pkt->job.word[1] = gw_job_spot_pack(&spot, count) | (uint32_t)level >> 6 << 30;
    if (pkt->agg_flags == GW_JOB_INSTALL && (op & 96) != 96)
        ask(f, pkt);
    feed(f, pkt);
}

static void input_values(struct fuzz *f)
{
    uint8_t what = take8(f);
    struct gw_pkt *pkt = claim_pkt(f, what & 1 ? GW_PKT_PARAM : GW_PKT_GRAD);
    pkt->agg_flags = what & 2 ? GW_AGG_COLLISION : 0;
    if (pkt->q.kind == GW_PKT_PARAM)
        pkt->agg_flags |= what & 4 ? GW_AGG_UNICAST : 0;
    else
        pkt->agg_flags |= what & 4 ? GW_AGG_RESEND : 0;
    pkt->seq = what >> 3 & 1;
    pkt->index = what >> 4 & 1;
    pkt->agg.values = 1;
    pkt->agg.level = what >> 5 & 3;
    pkt->agg.bitmap = UINT32_C(1) << (take8(f) % 32);
    pkt->agg.above[0] = take8(f) & 31;
    pkt->agg.above[1] = take8(f) & 31;
    feed(f, pkt);
}

static void pass_time(struct fuzz *f)
{
    uint8_t step = take8(f);
    gw_time deadline = gw_node_deadline(f->node);
    if (step & 1 && deadline != GW_TIME_NEVER && gw_time_before(f->now, deadline))
        f->now = deadline;
    else
        f->now += (gw_time)step * step * GW_US;
    gw_node_expire(f->node, f->now);
    deadline = gw_node_deadline(f->node);
    GW_ASSERT(deadline == GW_TIME_NEVER || gw_time_before(f->now, deadline));
    for (uint32_t i = 0; i < JOBS; i++)
        check_job(f, i, f->snapshots[i].life);
}

static void fuzz_open(struct fuzz *f)
{
    static _Alignas(64) unsigned char storage[2][STORAGE];
    static struct gw_pkt pkts[PKTS];
    static const uint16_t leaves[] = {0, 1, 2, GW_ROUTE_SET}, both[] = {3, 4};
    static const struct gw_switch_set sets[] = {{.first = 0, .count = 2}};
    static const bool is_edge[PORTS] = {true, true};
    gw_pkt_pool_init(&f->pool, pkts, 0, PKTS, NULL);
    struct gw_aggregate_cfg aggregate = {.aggregators = AGGREGATORS,
                                         .jobs_max = JOBS_MAX,
                                         .members_max = MEMBERS_MAX,
                                         .leak = GW_MS,
                                         .job_idle = take8(f) * GW_MS,
                                         .kernels = gw_kernels_best(gw_cpu_features()),
                                         .pool = &f->pool};
    GW_ASSERT(gw_aggregate_size(&aggregate) <= STORAGE);
    f->aggregate = gw_aggregate_init(storage[0], &aggregate);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "fifo", &f->pool);
    cfg.trim_size = HDR;
    cfg.aggregate = f->aggregate;
    cfg.address = ADDRESS;
    cfg.is_edge = is_edge;
    cfg.routes = gw_test_routes(leaves, HOSTS);
    cfg.routes.sets = sets;
    cfg.routes.members = both;
    GW_ASSERT(gw_switch_size(&cfg) <= STORAGE);
    f->sw = gw_switch_init(storage[1], &cfg);
    f->node = gw_switch_node(f->sw);
    f->now = (gw_time)0 - GW_MS; /* the clock wraps soon */
}

static void fuzz_close(struct fuzz *f)
{
    total_malformed += gw_switch_stats(f->sw)->malformed;
    total_idle += gw_switch_stats(f->sw)->jobs_idle;
    total_sums += gw_aggregate_stats(f->aggregate)->completed;
    for (uint32_t i = 0; i < JOBS; i++)
        gw_aggregate_remove(f->aggregate, i);
    GW_ASSERT(gw_aggregate_taken(f->aggregate) == 0);
    GW_ASSERT(gw_test_pool_free(&f->pool) == PKTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.steps = {data, size}};
    fuzz_open(&f);
    while (f.steps.left) {
        switch (take8(&f) % 8) {
        case 0:
            input_datagram(&f);
            break;
        case 1:
            pass_time(&f);
            break;
        case 2:
        case 3:
            input_values(&f);
            break;
        default:
            input_job(&f);
        }
    }
    fuzz_close(&f);
    return 0;
}

enum {
    ROUNDS = 100000,
};

static void check_reached(void)
{
    print_message("active %llu, taken %llu, no room %llu, malformed %llu, idle %llu, sums %llu\n",
                  (unsigned long long)total_active, (unsigned long long)total_taken,
                  (unsigned long long)total_room, (unsigned long long)total_malformed,
                  (unsigned long long)total_idle, (unsigned long long)total_sums);
    assert_true(total_active > ROUNDS / 50 && total_taken > ROUNDS / 2000);
    assert_true(total_room > ROUNDS / 50 && total_malformed > ROUNDS / 50);
    assert_true(total_idle > ROUNDS / 50 && total_sums > ROUNDS / 50);
}

const struct gw_test_target gw_test_target = {
    .corpus = "switch_jobs",
    .seed = 3,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
